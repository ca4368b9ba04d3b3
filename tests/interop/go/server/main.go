// The codec of kimi-agent-sdk as a server, called by everywire. Usage: server tcp (prints its port) | server stdio
// Methods: echo, fail, upload (sums an input stream), download ({"n":N}: N numbers), chat (sends each number back doubled),
// watch ({"n":N}: N numbers as events and a result; N below 0: an error; N = 0: no end).
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"time"

	"github.com/MoonshotAI/kimi-agent-sdk/go/wire/jsonrpc2"
	"interop/peer"
)

// Svc is the service; its methods have the shape that net/rpc wants.
type Svc struct{}

// Count asks for n items.
type Count struct{ N int }

// Echo gives back its input.
func (Svc) Echo(in *json.RawMessage, out *json.RawMessage) error { *out = *in; return nil }

// Fail fails with a plain text.
func (Svc) Fail(_ *json.RawMessage, _ *json.RawMessage) error { return errors.New("told why") }

// Upload sums what is streamed to it.
func (Svc) Upload(in *peer.Download, out *int) error {
	all, err := in.Wait()
	for _, item := range all {
		var n int
		if err := json.Unmarshal(item, &n); err != nil {
			return err
		}
		*out += n
	}
	return err
}

// Download streams 1 to n.
func (Svc) Download(in *Count, out *peer.Upload) error {
	out.Base = map[string]int{"n": in.N}
	for i := range in.N {
		out.Items = append(out.Items, json.RawMessage(fmt.Sprint(i+1)))
	}
	return nil
}

// Watch streams events: the codec cannot put the end into the close frame.
func (Svc) Watch(in *Count, out *peer.Upload) error {
	put := func(text string) { out.Items = append(out.Items, json.RawMessage(text)) }
	for i := range in.N {
		put(fmt.Sprintf(`{"chunk":%d}`, i+1))
	}
	if in.N > 0 {
		put(`{"result":"watched"}`)
	} else if in.N < 0 {
		put(`{"chunk":0}`)
		put(`{"error":{"code":-32000,"message":"told why","data":{"status":"ABORTED"}}}`)
	}
	return nil
}

// Chat streams back twice what was streamed to it.
func (Svc) Chat(in *peer.Download, out *peer.Upload) error {
	all, err := in.Wait()
	out.Base = "chat"
	for _, item := range all {
		var n int
		if err := json.Unmarshal(item, &n); err != nil {
			return err
		}
		out.Items = append(out.Items, json.RawMessage(fmt.Sprint(2*n)))
	}
	return err
}

var names = map[string]string{"echo": "Svc.Echo", "fail": "Svc.Fail", "upload": "Svc.Upload", "download": "Svc.Download", "chat": "Svc.Chat",
	"watch": "Svc.Watch"}

func serve(server *rpc.Server, rwc io.ReadWriteCloser) {
	server.ServeCodec(jsonrpc2.NewCodec(rwc, jsonrpc2.WaitStreamTimeout(2*peer.Limit), jsonrpc2.ServerMethodRenamer(jsonrpc2.RenamerFunc(func(name string) string {
		if known, ok := names[name]; ok {
			return known
		}
		return "Svc." + name
	}))))
}

func main() {
	peer.Patience = 2 * time.Second // for thousands of uploads at once
	server := rpc.NewServer()
	if err := server.RegisterName("Svc", Svc{}); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == "stdio" {
		serve(server, peer.Stdio())
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go serve(server, conn)
	}
}
