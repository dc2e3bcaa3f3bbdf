"""The stdin, stdout and stderr of this process, as the streams of a command in the direct form."""
