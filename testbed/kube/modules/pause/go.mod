module mpirt/tests/pause

go 1.24
