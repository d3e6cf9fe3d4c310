import static io.grpc.stub.ClientCalls.asyncBidiStreamingCall;
import static io.grpc.stub.ClientCalls.asyncClientStreamingCall;
import static io.grpc.stub.ClientCalls.blockingServerStreamingCall;
import static io.grpc.stub.ClientCalls.blockingUnaryCall;

import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.Descriptors.ServiceDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** grpc-java on netty against Quill's servers: Client DEMO_PORT TEST_PORT DESCRIPTOR_SET. */
public final class Client {
  private static final String END = "end";
  private final Map<String, ServiceDescriptor> services = new HashMap<>();
  private final Channel demo;
  private final Channel test;

  private Client(Channel demo, Channel test, Path descriptors) throws Exception {
    this.demo = demo;
    this.test = test;
    Map<String, FileDescriptorProto> files = new LinkedHashMap<>();
    FileDescriptorSet set = FileDescriptorSet.parseFrom(Files.readAllBytes(descriptors));
    set.getFileList().forEach(file -> files.put(file.getName(), file));
    Map<String, FileDescriptor> built = new HashMap<>();
    for (String name : files.keySet()) {
      build(name, files, built).getServices().forEach(s -> services.put(s.getFullName(), s));
    }
  }

  private static FileDescriptor build(
      String name, Map<String, FileDescriptorProto> files, Map<String, FileDescriptor> built)
      throws Exception {
    if (!built.containsKey(name)) {
      FileDescriptorProto file = files.get(name);
      List<FileDescriptor> imports = new ArrayList<>();
      for (String needed : file.getDependencyList()) {
        imports.add(build(needed, files, built));
      }
      built.put(name, FileDescriptor.buildFrom(file, imports.toArray(new FileDescriptor[0])));
    }
    return built.get(name);
  }

  private MethodDescriptor find(String method) {
    String service = method.endsWith("Call") ? "grpc.testing.TestService" : "echo.v1.EchoService";
    return services.get(service).findMethodByName(method);
  }

  private io.grpc.MethodDescriptor<DynamicMessage, DynamicMessage> method(String name) {
    MethodDescriptor method = find(name);
    boolean up = method.isClientStreaming();
    boolean down = method.isServerStreaming();
    io.grpc.MethodDescriptor.MethodType type =
        up && down
            ? io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING
            : up
                ? io.grpc.MethodDescriptor.MethodType.CLIENT_STREAMING
                : down
                    ? io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING
                    : io.grpc.MethodDescriptor.MethodType.UNARY;
    return io.grpc.MethodDescriptor.<DynamicMessage, DynamicMessage>newBuilder()
        .setType(type)
        .setFullMethodName(method.getService().getFullName() + "/" + name)
        .setRequestMarshaller(marshaller(method.getInputType()))
        .setResponseMarshaller(marshaller(method.getOutputType()))
        .build();
  }

  private static io.grpc.MethodDescriptor.Marshaller<DynamicMessage> marshaller(Descriptor type) {
    return ProtoUtils.marshaller(DynamicMessage.getDefaultInstance(type));
  }

  private DynamicMessage request(String method, String json) throws Exception {
    DynamicMessage.Builder builder = DynamicMessage.newBuilder(find(method).getInputType());
    JsonFormat.parser().merge(json, builder);
    return builder.build();
  }

  private static Object field(DynamicMessage message, String name) {
    return message.getField(message.getDescriptorForType().findFieldByName(name));
  }

  private DynamicMessage echo(String json, CallOptions options) throws Exception {
    return blockingUnaryCall(demo, method("Echo"), options, request("Echo", json));
  }

  private void unary() throws Exception {
    equal("hi", field(echo("{\"message\":\"hi\"}", CallOptions.DEFAULT), "message"));
  }

  private void unaryGzip() throws Exception {
    String longer = "hi".repeat(10_000);
    CallOptions gzip = CallOptions.DEFAULT.withCompression("gzip");
    equal(longer, field(echo("{\"message\":\"" + longer + "\"}", gzip), "message"));
  }

  private Iterator<DynamicMessage> expand(String json, CallOptions options) throws Exception {
    return blockingServerStreamingCall(demo, method("Expand"), options, request("Expand", json));
  }

  private void serverStream() throws Exception {
    List<Object> messages = new ArrayList<>();
    expand("{\"message\":\"a\",\"count\":3}", CallOptions.DEFAULT)
        .forEachRemaining(answer -> messages.add(field(answer, "message")));
    equal(Arrays.asList("a", "a", "a"), messages);
  }

  /** Answers, then the end, as they come. */
  private static final class Answers implements StreamObserver<DynamicMessage> {
    final BlockingQueue<Object> came = new LinkedBlockingQueue<>();

    @Override
    public void onNext(DynamicMessage answer) {
      came.add(answer);
    }

    @Override
    public void onError(Throwable error) {
      came.add(error);
    }

    @Override
    public void onCompleted() {
      came.add(END);
    }

    Object next() throws InterruptedException {
      return came.poll(10, TimeUnit.SECONDS);
    }
  }

  private void clientStream() throws Exception {
    Answers answers = new Answers();
    StreamObserver<DynamicMessage> requests =
        asyncClientStreamingCall(demo.newCall(method("Collect"), CallOptions.DEFAULT), answers);
    requests.onNext(request("Collect", "{\"message\":\"a\"}"));
    requests.onNext(request("Collect", "{\"message\":\"b\"}"));
    requests.onCompleted();
    equal(2, field((DynamicMessage) answers.next(), "count"));
  }

  private void bidiStream() throws Exception {
    Answers answers = new Answers();
    StreamObserver<DynamicMessage> requests =
        asyncBidiStreamingCall(demo.newCall(method("Chat"), CallOptions.DEFAULT), answers);
    for (String message : Arrays.asList("a", "b", "c")) {
      requests.onNext(request("Chat", "{\"message\":\"" + message + "\"}"));
      equal(message, field((DynamicMessage) answers.next(), "message"));
    }
    requests.onCompleted();
    equal(END, answers.next());
  }

  private void error() throws Exception {
    String json = "{\"errorCode\":5,\"errorMessage\":\"no such thing: 100% \u263a\\n\"}";
    Status status = failure(() -> echo(json, CallOptions.DEFAULT)).getStatus();
    equal(Status.Code.NOT_FOUND, status.getCode());
    equal("no such thing: 100% \u263a\n", status.getDescription());
  }

  private void errorInsideAStream() throws Exception {
    Iterator<DynamicMessage> answers =
        expand("{\"message\":\"a\",\"errorCode\":9,\"errorAfter\":2}", CallOptions.DEFAULT);
    equal("a", field(answers.next(), "message"));
    equal("a", field(answers.next(), "message"));
    equal(Status.Code.FAILED_PRECONDITION, failure(answers::next).getStatus().getCode());
  }

  private void errorDetails() throws Exception {
    DynamicMessage asked =
        request("UnaryCall", "{\"responseStatus\":{\"code\":7,\"message\":\"not yours\"}}");
    StatusRuntimeException error =
        failure(
            () -> blockingUnaryCall(test, method("UnaryCall"), CallOptions.DEFAULT, asked));
    String type = StatusProto.fromThrowable(error).getDetails(0).getTypeUrl();
    equal("type.googleapis.com/grpc.testing.EchoStatus", type);
  }

  private void deadline() throws Exception {
    CallOptions soon = CallOptions.DEFAULT.withDeadlineAfter(300, TimeUnit.MILLISECONDS);
    Status status = failure(() -> echo("{\"delayMs\":20000}", soon)).getStatus();
    equal(Status.Code.DEADLINE_EXCEEDED, status.getCode());
  }

  private void metadata() throws Exception {
    Metadata.Key<String> initial =
        Metadata.Key.of("x-grpc-test-echo-initial", Metadata.ASCII_STRING_MARSHALLER);
    Metadata.Key<byte[]> trailing =
        Metadata.Key.of("x-grpc-test-echo-trailing-bin", Metadata.BINARY_BYTE_MARSHALLER);
    Metadata sent = new Metadata();
    sent.put(initial, "value");
    sent.put(trailing, new byte[] {0, -1, 11});
    AtomicReference<Metadata> head = new AtomicReference<>();
    AtomicReference<Metadata> trailers = new AtomicReference<>();
    Channel channel =
        ClientInterceptors.intercept(
            test,
            MetadataUtils.newAttachHeadersInterceptor(sent),
            MetadataUtils.newCaptureMetadataInterceptor(head, trailers));
    DynamicMessage asked = request("UnaryCall", "{\"responseSize\":1}");
    blockingUnaryCall(channel, method("UnaryCall"), CallOptions.DEFAULT, asked);
    equal("value", head.get().get(initial));
    equal("[0, -1, 11]", Arrays.toString(trailers.get().get(trailing)));
  }

  private static StatusRuntimeException failure(Callable<?> call) throws Exception {
    try {
      call.call();
    } catch (StatusRuntimeException error) {
      return error;
    }
    throw new AssertionError("the call succeeded");
  }

  private static void equal(Object expected, Object came) {
    if (!expected.equals(came)) {
      throw new AssertionError(came + " instead of " + expected);
    }
  }

  /** A case, which throws when it fails. */
  private interface Case {
    void run() throws Exception;
  }

  private Map<String, Case> cases() {
    Map<String, Case> cases = new LinkedHashMap<>();
    cases.put("unary", this::unary);
    cases.put("unary, gzip", this::unaryGzip);
    cases.put("server stream", this::serverStream);
    cases.put("client stream", this::clientStream);
    cases.put("bidi stream", this::bidiStream);
    cases.put("error", this::error);
    cases.put("error inside a stream", this::errorInsideAStream);
    cases.put("error details", this::errorDetails);
    cases.put("deadline", this::deadline);
    cases.put("metadata", this::metadata);
    return cases;
  }

  public static void main(String[] arguments) throws Exception {
    ManagedChannel demo = connect(arguments[0]);
    ManagedChannel test = connect(arguments[1]);
    int failed = 0;
    Client client = new Client(demo, test, Path.of(arguments[2]));
    for (Map.Entry<String, Case> each : client.cases().entrySet()) {
      String verdict = "ok";
      try {
        each.getValue().run();
      } catch (Exception | AssertionError error) {
        verdict = "FAILED: " + error;
        failed++;
      }
      System.out.println("grpc-java: " + each.getKey() + ": " + verdict);
    }
    System.exit(failed == 0 ? 0 : 1);
  }

  private static ManagedChannel connect(String port) {
    return NettyChannelBuilder.forAddress("127.0.0.1", Integer.parseInt(port))
        .usePlaintext()
        .build();
  }
}
