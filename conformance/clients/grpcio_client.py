"""grpcio, against Quill's servers:

    python grpcio_client.py DEMO_PORT TEST_PORT DESCRIPTOR_SET
"""

import queue
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_status import rpc_status

ECHO_INITIAL = "x-grpc-test-echo-initial"
ECHO_TRAILING = "x-grpc-test-echo-trailing-bin"


def load(path):
    """The services of a descriptor set, by their full names."""
    files = descriptor_pb2.FileDescriptorSet.FromString(open(path, "rb").read()).file
    # The usual types come with either half of the set.
    pool = descriptor_pool.DescriptorPool()
    for file in {file.name: file for file in files}.values():
        pool.Add(file)
    return pool


class Stub:
    """A service's methods, called by their names."""

    def __init__(self, channel, pool, service):
        self.channel = channel
        self.methods = pool.FindServiceByName(service).methods_by_name
        self.service = service

    def __getattr__(self, name):
        method = self.methods[name]
        request = message_factory.GetMessageClass(method.input_type)
        kind = "_".join(
            "stream" if streams else "unary"
            for streams in (method.client_streaming, method.server_streaming)
        )
        call = getattr(self.channel, kind)(
            f"/{self.service}/{name}",
            request_serializer=request.SerializeToString,
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )
        call.message = request
        return call


def failure(call):
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call succeeded")


class Cases:
    def __init__(self, demo, test, pool):
        self.echo = Stub(grpc.insecure_channel(f"127.0.0.1:{demo}"), pool, "echo.v1.EchoService")
        self.test = Stub(
            grpc.insecure_channel(f"127.0.0.1:{test}"), pool, "grpc.testing.TestService"
        )
        self.status = message_factory.GetMessageClass(
            pool.FindMessageTypeByName("grpc.testing.EchoStatus")
        )

    def unary(self):
        call = self.echo.Echo
        assert call(call.message(message="hi")).message == "hi"

    def unary_gzip(self):
        call = self.echo.Echo
        long = "hi" * 10000
        assert call(call.message(message=long), compression=grpc.Compression.Gzip).message == long

    def server_stream(self):
        call = self.echo.Expand
        answers = call(call.message(message="a", count=3))
        assert [answer.message for answer in answers] == ["a", "a", "a"]

    def client_stream(self):
        call = self.echo.Collect
        assert call(call.message(message=text) for text in "ab").count == 2

    def bidi_stream(self):
        call = self.echo.Chat
        requests = queue.SimpleQueue()
        answers = call(iter(requests.get, None))
        for text in "abc":
            requests.put(call.message(message=text))
            assert next(answers).message == text
        requests.put(None)
        assert list(answers) == []

    def error(self):
        call = self.echo.Echo
        message = "no such thing: 100% \u263a\n"
        error = failure(lambda: call(call.message(error_code=5, error_message=message)))
        assert (error.code(), error.details()) == (grpc.StatusCode.NOT_FOUND, message), error

    def error_inside_a_stream(self):
        call = self.echo.Expand
        answers = call(call.message(message="a", error_code=9, error_after=2))
        assert [next(answers).message, next(answers).message] == ["a", "a"]
        error = failure(lambda: next(answers))
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error

    def error_details(self):
        call = self.test.UnaryCall
        status = self.status(code=7, message="not yours")
        error = failure(lambda: call(call.message(response_status=status)))
        (detail,) = rpc_status.from_call(error).details
        assert detail.type_url.endswith("/grpc.testing.EchoStatus"), detail
        assert self.status.FromString(detail.value) == status, detail

    def deadline(self):
        call = self.echo.Echo
        error = failure(lambda: call(call.message(delay_ms=20000), timeout=0.1))
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error

    def deadline_of_a_stream(self):
        call = self.echo.Expand
        answers = call(call.message(message="a", count=2, interval_ms=20000), timeout=0.5)
        error = failure(lambda: list(answers))
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error

    def cancellation(self):
        call = self.echo.Expand
        answers = call(call.message(message="a"))
        assert next(answers).message == "a"
        answers.cancel()
        error = failure(lambda: list(answers))
        assert error.code() == grpc.StatusCode.CANCELLED, error
        self.unary()

    def metadata(self):
        call = self.test.UnaryCall
        sent = ((ECHO_INITIAL, "value"), (ECHO_TRAILING, b"\x00\xff\x0b"))
        _, call = call.with_call(call.message(response_size=1), metadata=sent)
        assert dict(call.initial_metadata())[ECHO_INITIAL] == "value"
        assert dict(call.trailing_metadata())[ECHO_TRAILING] == b"\x00\xff\x0b"

    def unimplemented(self):
        call = self.test.UnimplementedCall
        error = failure(lambda: call(call.message()))
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error


def main(demo, test, descriptors):
    cases = Cases(demo, test, load(descriptors))
    failed = 0
    for name, run in vars(Cases).items():
        if name.startswith("_"):
            continue
        try:
            run(cases)
            verdict = "ok"
        except Exception as error:  # whatever it is, the other cases still run
            verdict = f"FAILED: {error!r}"
            failed += 1
        print(f"grpcio: {name.replace('_', ' ')}: {verdict}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
