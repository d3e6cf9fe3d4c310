"""connectrpc for Python, which sends gzip unless told otherwise, against Quill's servers:

    python connectrpc_client.py DEMO_PORT TEST_PORT DESCRIPTOR_SET
"""

import sys

from connectrpc.client import ConnectClientSync
from connectrpc.code import Code
from connectrpc.compat import google_protobuf_binary_codec
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.protocol import ProtocolType
from google.protobuf import message_factory
from pyqwest import HTTPVersion, SyncClient, SyncHTTPTransport

from grpcio_client import load

KINDS = {
    (False, False): StreamType.UNARY,
    (True, False): StreamType.CLIENT_STREAM,
    (False, True): StreamType.SERVER_STREAM,
    (True, True): StreamType.BIDI_STREAM,
}


class Stub:
    """A service's methods, called by their names with the fields of a request."""

    def __init__(self, port, protocol, pool, service):
        # gRPC needs HTTP/2; without TLS the others stay with HTTP/1.1.
        version = HTTPVersion.HTTP2 if protocol == ProtocolType.GRPC else None
        self.client = ConnectClientSync(
            f"http://127.0.0.1:{port}",
            codec=google_protobuf_binary_codec(),
            protocol=protocol,
            http_client=SyncClient(SyncHTTPTransport(http_version=version)),
        )
        self.service = pool.FindServiceByName(service)

    def call(self, name, *requests, **options):
        found = self.service.methods_by_name[name]
        kind = KINDS[found.client_streaming, found.server_streaming]
        request = message_factory.GetMessageClass(found.input_type)
        method = MethodInfo(
            name=name,
            service_name=self.service.full_name,
            input=request,
            output=message_factory.GetMessageClass(found.output_type),
            idempotency_level=IdempotencyLevel.NO_SIDE_EFFECTS,
            stream_type=kind,
        )
        messages = [request(**fields) for fields in requests]
        if found.client_streaming:
            messages = [iter(messages)]
        execute = getattr(self.client, f"execute_{kind.name.lower()}")
        return execute(request=messages[0], method=method, **options)


def failure(call):
    try:
        call()
    except ConnectError as error:
        return error
    raise AssertionError("the call succeeded")


class Cases:
    def __init__(self, demo, test, pool, protocol):
        self.echo = Stub(demo, protocol, pool, "echo.v1.EchoService")
        self.test = Stub(test, protocol, pool, "grpc.testing.TestService")
        self.protocol = protocol

    def unary(self):
        long = "hi" * 10000
        assert self.echo.call("Echo", {"message": long}).message == long

    def unary_by_get(self):
        if self.protocol == ProtocolType.CONNECT:
            assert self.echo.call("Echo", {"message": "hi"}, use_get=True).message == "hi"

    def server_stream(self):
        answers = self.echo.call("Expand", {"message": "a", "count": 3})
        assert [answer.message for answer in answers] == ["a", "a", "a"]

    def client_stream(self):
        assert self.echo.call("Collect", {"message": "a"}, {"message": "b"}).count == 2

    def bidi_stream(self):
        answers = self.echo.call("Chat", {"message": "a"}, {"message": "b"})
        assert [answer.message for answer in answers] == ["a", "b"]

    def error(self):
        message = "no such thing: 100% \u263a\n"
        asked = {"error_code": 5, "error_message": message}
        error = failure(lambda: self.echo.call("Echo", asked))
        assert (error.code, error.message) == (Code.NOT_FOUND, message), error

    def error_inside_a_stream(self):
        asked = {"message": "a", "error_code": 9, "error_after": 2}
        error = failure(lambda: list(self.echo.call("Expand", asked)))
        assert error.code == Code.FAILED_PRECONDITION, error

    def error_details(self):
        asked = {"response_status": {"code": 7, "message": "not yours"}}
        error = failure(lambda: self.test.call("UnaryCall", asked))
        assert [d.type_name for d in error.details] == ["grpc.testing.EchoStatus"], error.details

    def deadline(self):
        error = failure(lambda: self.echo.call("Echo", {"delay_ms": 20000}, timeout_ms=200))
        assert error.code == Code.DEADLINE_EXCEEDED, error

    def large_messages(self):
        asked = {"payload": {"body": bytes(271828)}, "response_size": 314159}
        assert len(self.test.call("UnaryCall", asked).payload.body) == 314159


def main(demo, test, descriptors):
    pool = load(descriptors)
    failed = 0
    for protocol in ProtocolType:
        cases = Cases(demo, test, pool, protocol)
        for name, run in vars(Cases).items():
            if name.startswith("_"):
                continue
            try:
                run(cases)
                verdict = "ok"
            except Exception as error:  # whatever it is, the other cases still run
                verdict = f"FAILED: {error!r}"
                failed += 1
            label = protocol.name.lower()
            print(f"connectrpc, {label}: {name.replace('_', ' ')}: {verdict}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
