module github.com/MoonshotAI/kimi-agent-sdk/go

go 1.25
