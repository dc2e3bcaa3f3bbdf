"""One request and one stream: HTTP, TLS, connections and proxies, and the WebSocket of an exec."""
