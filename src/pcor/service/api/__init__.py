"""The HTTP interface for programs: routes, the bodies of requests, and who may call what."""
