module example.com/testbed/notes-file

go 1.23

require github.com/modelcontextprotocol/go-sdk v1.4.0

require github.com/gofrs/flock v0.12.1
