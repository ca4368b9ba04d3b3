module interop/genkit

go 1.25
