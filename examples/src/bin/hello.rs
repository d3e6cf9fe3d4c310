//! A service, and a call to it. The types come from `proto/greet/v1/greet.proto`
//! by way of `build.rs`.

use quill::{Error, Request, Response, Server};

quill::include_proto!("greet.v1");

struct Greeter;

impl GreetService for Greeter {
    async fn greet(
        &self,
        request: Request<GreetRequest>,
    ) -> Result<Response<GreetResponse>, Error> {
        let name = request.into_inner().name;
        if name.is_empty() {
            return Err(Error::invalid_argument("name is empty: say who is greeted"));
        }
        let reply = GreetResponse {
            greeting: format!("Hello, {name}!"),
            ..Default::default()
        };
        Ok(reply.into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder()
        .service(GreetServer::new(Greeter))
        .bind("127.0.0.1:0")
        .await?
        .start();
    let address = server.local_addr().ok_or("no TCP socket")?;

    let client = GreetClient::connect(format!("http://{address}")).await?;
    let request = GreetRequest {
        name: "Ada".into(),
        ..Default::default()
    };
    let reply = client.greet(request).await?.into_inner();
    println!("{}", reply.greeting);
    assert_eq!(reply.greeting, "Hello, Ada!");

    server.shutdown().await;
    Ok(())
}
