// The OpenTelemetry collector's own OTLP receiver, which writes what it takes as
// one line of OTLP/JSON each to standard output, after a first line with its port.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: otlp HOST:PORT")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	var mutex sync.Mutex
	write := func(line []byte, err error) error {
		if err != nil {
			return err
		}
		mutex.Lock()
		defer mutex.Unlock()
		_, err = fmt.Printf("%s\n", line)
		return err
	}
	traces, err := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
		return write((&ptrace.JSONMarshaler{}).MarshalTraces(traces))
	})
	if err != nil {
		return err
	}
	metrics, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
		return write((&pmetric.JSONMarshaler{}).MarshalMetrics(metrics))
	})
	if err != nil {
		return err
	}

	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.Protocols.GRPC = configoptional.Some(configgrpc.ServerConfig{
		NetAddr: confignet.AddrConfig{Endpoint: os.Args[1], Transport: confignet.TransportTypeTCP},
	})
	config.Protocols.HTTP = configoptional.None[otlpreceiver.HTTPConfig]()
	settings := receiver.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}
	ofTraces, err := factory.CreateTraces(ctx, settings, config, traces)
	if err != nil {
		return err
	}
	ofMetrics, err := factory.CreateMetrics(ctx, settings, config, metrics)
	if err != nil {
		return err
	}
	host := componenttest.NewNopHost()
	for _, one := range []component.Component{ofTraces, ofMetrics} {
		if err := one.Start(ctx, host); err != nil {
			return err
		}
		defer one.Shutdown(context.Background())
	}
	<-ctx.Done()
	return nil
}
