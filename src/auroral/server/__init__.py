"""The server: an engine behind REST, WebSockets, Arrow Flight and line feeds, and the studio."""
