// The service of proto/echo.proto on grpc-go. Its Payload has the wire form of
// google.protobuf.BytesValue, which needs no generated code.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const expanded = 500

func unary(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	payload := new(wrapperspb.BytesValue)
	if err := decode(payload); err != nil {
		return nil, err
	}
	return payload, nil
}

func expand(_ any, stream grpc.ServerStream) error {
	payload := new(wrapperspb.BytesValue)
	if err := stream.RecvMsg(payload); err != nil {
		return err
	}
	for range expanded {
		if err := stream.SendMsg(payload); err != nil {
			return err
		}
	}
	return nil
}

func collect(_ any, stream grpc.ServerStream) error {
	last := new(wrapperspb.BytesValue)
	for {
		payload := new(wrapperspb.BytesValue)
		err := stream.RecvMsg(payload)
		if errors.Is(err, io.EOF) {
			return stream.SendMsg(last)
		}
		if err != nil {
			return err
		}
		last = payload
	}
}

func chat(_ any, stream grpc.ServerStream) error {
	for {
		payload := new(wrapperspb.BytesValue)
		err := stream.RecvMsg(payload)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.SendMsg(payload); err != nil {
			return err
		}
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "echo.v1.Echo",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Unary", Handler: unary}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Expand", Handler: expand, ServerStreams: true},
			{StreamName: "Collect", Handler: collect, ClientStreams: true},
			{StreamName: "Chat", Handler: chat, ServerStreams: true, ClientStreams: true},
		},
	}, struct{}{})
	// Serves until whoever started it is gone.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(listener.Addr())
	log.Fatal(server.Serve(listener))
}
