//! An error with a typed detail: the caller's program reads it, in any protocol.

use std::time::Duration;

use quill::{Code, Error, Protocol, QuillClient, Request, Response, Server};

quill::include_proto!("shop.v1");

struct Shop;

impl ShopService for Shop {
    async fn order(
        &self,
        request: Request<OrderRequest>,
    ) -> Result<Response<OrderResponse>, Error> {
        let order = request.into_inner();
        let left = 2;
        if order.count > left {
            let detail = OutOfStock {
                article: order.article,
                left,
                ..Default::default()
            };
            return Err(Error::failed_precondition("not enough in stock")
                .with_detail(&detail)
                .with_retry_after(Duration::from_secs(3600))
                .with_metadata("x-warehouse", "north")?);
        }
        let filled = OrderResponse {
            number: "2024-1".into(),
            ..Default::default()
        };
        Ok(filled.into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder()
        .service(ShopServer::new(Shop))
        .bind("127.0.0.1:0")
        .await?
        .start();
    let address = server.local_addr().ok_or("no TCP socket")?;

    for protocol in Protocol::ALL {
        let client = QuillClient::builder()
            .base_url(format!("http://{address}"))
            .protocol(protocol)
            .build()?;
        let order = OrderRequest {
            article: "lamp".into(),
            count: 5,
            ..Default::default()
        };
        let error = match ShopClient::new(client).order(order).await {
            Ok(_) => return Err("five lamps of two were sold".into()),
            Err(error) => error,
        };
        println!("{}: {error}", protocol.name());
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert_eq!(error.received_metadata().get("x-warehouse"), Some("north"));
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));

        let detail: OutOfStock = error.detail().ok_or("no detail of this type")?;
        println!("  {} left of {}", detail.left, detail.article);
        assert_eq!(detail.left, 2);
    }

    server.shutdown().await;
    Ok(())
}
