module interop/jrpc2

go 1.25
