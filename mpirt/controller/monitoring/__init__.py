"""Monitoring: the log, the metrics, and the HTTP server for metrics and probes."""
