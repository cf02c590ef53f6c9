module example.com/testbed/rate-limiter

go 1.23

require github.com/modelcontextprotocol/go-sdk v1.4.0
