"""Below HTTP: sockets, connections, logs, and the processes that serve."""
