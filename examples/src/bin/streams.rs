//! The four kinds of call: one message or a stream, each way.

use futures_util::{StreamExt, TryStreamExt, stream};
use quill::{Error, Request, Response, Server, Stream, Streaming};

quill::include_proto!("sums.v1");

struct Sums;

impl SumService for Sums {
    async fn square(&self, request: Request<Number>) -> Result<Response<Number>, Error> {
        let value = request.into_inner().value;
        let square = value
            .checked_mul(value)
            .ok_or_else(|| Error::out_of_range(format!("{value} squared is over 64 bits")))?;
        Ok(number(square).into())
    }

    // A stream is polled only as fast as the caller reads it.
    async fn count(
        &self,
        request: Request<Number>,
    ) -> Result<Response<impl Stream<Item = Result<Number, Error>> + Send>, Error> {
        let last = request.into_inner().value;
        Ok(stream::iter(1..=last).map(|value| Ok(number(value))).into())
    }

    async fn sum(&self, request: Request<Streaming<Number>>) -> Result<Response<Number>, Error> {
        let mut numbers = request.into_inner();
        let mut sum = 0_u64;
        while let Some(number) = numbers.message().await? {
            sum = sum.wrapping_add(number.value);
        }
        Ok(number(sum).into())
    }

    async fn running_sum(
        &self,
        request: Request<Streaming<Number>>,
    ) -> Result<Response<impl Stream<Item = Result<Number, Error>> + Send>, Error> {
        let mut sum = 0_u64;
        let sums = request.into_inner().map_ok(move |next| {
            sum = sum.wrapping_add(next.value);
            number(sum)
        });
        Ok(sums.into())
    }
}

fn number(value: u64) -> Number {
    Number {
        value,
        ..Default::default()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder()
        .service(SumServer::new(Sums))
        .bind("127.0.0.1:0")
        .await?
        .start();
    let address = server.local_addr().ok_or("no TCP socket")?;
    let client = SumClient::connect(format!("http://{address}")).await?;

    let square = client.square(number(7)).await?.into_inner();
    println!("unary: 7 squared is {}", square.value);
    assert_eq!(square.value, 49);

    let mut counted = client.count(number(3)).await?.into_inner();
    while let Some(number) = counted.message().await? {
        println!("server stream: {}", number.value);
    }

    let sum = client.sum(stream::iter((1..=10).map(number))).await?;
    println!("client stream: 1 to 10 is {}", sum.message().value);
    assert_eq!(sum.message().value, 55);

    let numbers = stream::iter([1, 2, 3].map(number));
    let sums = client.running_sum(numbers).await?.into_inner();
    let sums: Vec<u64> = sums.map_ok(|sum| sum.value).try_collect().await?;
    println!("both ways: the sums so far were {sums:?}");
    assert_eq!(sums, [1, 3, 6]);

    server.shutdown().await;
    Ok(())
}
