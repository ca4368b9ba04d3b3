// The codec of kimi-agent-sdk in both roles on one connection: it listens, calls whoever connects, and is called by it meanwhile.
// Usage: both      prints its port, takes one connection (tests/interop/go_both.c), leaves with its checks
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"net"
	"net/rpc"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/MoonshotAI/kimi-agent-sdk/go/wire/jsonrpc2"
	"interop/peer"
)

const rounds = 500

var served atomic.Int64
var finished = make(chan struct{})

// Svc is what the other side may call.
type Svc struct{}

// Twice doubles its input.
func (Svc) Twice(in *int, out *int) error { served.Add(1); *out = 2 * *in; return nil }

// Bye says that the other side has done all its calls.
func (Svc) Bye(_ *int, _ *int) error { close(finished); return nil }

func call(client *rpc.Client) error {
	errs := make([]error, rounds)
	var wait sync.WaitGroup
	for i := range rounds {
		wait.Go(func() {
			var out int
			if errs[i] = client.Call("Demo.negate", i, &out); errs[i] == nil {
				errs[i] = peer.Want("negate", out, -i)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "both:", err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	conn, err := listener.Accept()
	if err != nil {
		fmt.Fprintln(os.Stderr, "both:", err)
		os.Exit(1)
	}
	var ids atomic.Int64
	codec := jsonrpc2.NewCodec(conn,
		jsonrpc2.JSONIDGenerator(jsonrpc2.GeneratorFunc[string](func() string { return fmt.Sprint("go-", ids.Add(1)) })),
		jsonrpc2.ClientMethodRenamer(jsonrpc2.RenamerFunc(func(name string) string { return strings.TrimPrefix(name, "Demo.") })),
		jsonrpc2.ServerMethodRenamer(jsonrpc2.RenamerFunc(func(name string) string { return "Svc." + strings.ToUpper(name[:1]) + name[1:] })))
	server := rpc.NewServer()
	if err := server.RegisterName("Svc", Svc{}); err != nil {
		fmt.Fprintln(os.Stderr, "both:", err)
		os.Exit(1)
	}
	left := make(chan struct{})
	go func() { server.ServeCodec(codec); close(left) }()
	client := rpc.NewClientWithCodec(codec)
	var checks peer.Checks
	checks.Check(fmt.Sprint(rounds, " calls while it is called"), func() error { return call(client) })
	checks.Check("the other side is done", func() error {
		select {
		case <-finished:
			return peer.Want("served", served.Load(), rounds)
		case <-time.After(peer.Limit):
			return fmt.Errorf("not after %v; served %d", peer.Limit, served.Load())
		}
	})
	select { // the answer to bye must reach the other side: it leaves first
	case <-left:
	case <-time.After(peer.Limit):
	}
	checks.Finish("go both")
}
