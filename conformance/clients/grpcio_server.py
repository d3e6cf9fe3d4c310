"""grpcio as a server of grpc.testing.TestService, for Quill's client:

    python grpcio_server.py DESCRIPTOR_SET

Prints its port and serves until it is killed. It reports no load.
"""

import sys
from concurrent import futures

import grpc
from google.protobuf import message_factory

from grpcio_client import ECHO_INITIAL, ECHO_TRAILING, load

SERVICE = "grpc.testing.TestService"


class Test:
    """The methods, by their names; `message` makes a message by its name."""

    def __init__(self, message):
        self.message = message

    def EmptyCall(self, request, context):
        return self.message("Empty")()

    def UnaryCall(self, request, context):
        echo(context)
        end(request.response_status, context)
        return self.message("SimpleResponse")(payload=self.payload(request.response_size))

    def StreamingOutputCall(self, request, context):
        for asked in request.response_parameters:
            yield self.message("StreamingOutputCallResponse")(payload=self.payload(asked.size))

    def StreamingInputCall(self, requests, context):
        size = sum(len(request.payload.body) for request in requests)
        return self.message("StreamingInputCallResponse")(aggregated_payload_size=size)

    def FullDuplexCall(self, requests, context):
        echo(context)
        for request in requests:
            end(request.response_status, context)
            yield from self.StreamingOutputCall(request, context)

    def payload(self, size):
        return self.message("Payload")(body=bytes(size))


def echo(context):
    for name, value in context.invocation_metadata():
        if name == ECHO_INITIAL:
            context.send_initial_metadata(((name, value),))
        if name == ECHO_TRAILING:
            context.set_trailing_metadata(((name, value),))


def end(status, context):
    if status.code:
        code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
        context.abort(code, status.message)


def main(descriptors):
    pool = load(descriptors)
    find = pool.FindMessageTypeByName
    test = Test(lambda name: message_factory.GetMessageClass(find(f"grpc.testing.{name}")))
    handlers = {}
    for method in pool.FindServiceByName(SERVICE).methods:
        if not hasattr(test, method.name):
            continue
        kind = "_".join(
            "stream" if streams else "unary"
            for streams in (method.client_streaming, method.server_streaming)
        )
        handlers[method.name] = getattr(grpc, f"{kind}_rpc_method_handler")(
            getattr(test, method.name),
            request_deserializer=message_factory.GetMessageClass(method.input_type).FromString,
            response_serializer=message_factory.GetMessageClass(
                method.output_type
            ).SerializeToString,
        )
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
