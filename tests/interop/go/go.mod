module interop

go 1.25
