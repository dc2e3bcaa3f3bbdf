"""Elastic Horovod: the job of examples/horovod-elastic, word for word, while things happen to its workers."""
