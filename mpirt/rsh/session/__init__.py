"""One command in one pod, from the first dial to its code: state machines. Events in, actions out, no I/O."""
