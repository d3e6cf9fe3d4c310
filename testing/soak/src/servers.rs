//! The servers that are called; one of them is restarted now and then.

use quill::RunningServer;
use quill_tests_resilience::Flaky;
use tokio::sync::Mutex;

pub(crate) struct Servers {
    pub(crate) urls: [String; 2],
    flaky: Flaky,
    restarted: Mutex<Option<RunningServer>>,
    _steady: RunningServer,
}

impl Servers {
    pub(crate) async fn start() -> Result<Self, String> {
        let flaky = Flaky::default();
        let steady = serve(&flaky, "127.0.0.1:0").await?;
        let restarted = serve(&flaky, "127.0.0.1:0").await?;
        Ok(Self {
            urls: [url(&steady)?, url(&restarted)?],
            flaky,
            restarted: Mutex::new(Some(restarted)),
            _steady: steady,
        })
    }

    /// Ends the second server and starts it again; at once where it is being
    /// restarted already.
    pub(crate) async fn restart(&self) -> Result<(), String> {
        let Ok(mut running) = self.restarted.try_lock() else {
            return Ok(());
        };
        if let Some(server) = running.take() {
            server.shutdown().await;
        }
        let address = self.urls[1].trim_start_matches("http://");
        *running = Some(serve(&self.flaky, address).await?);
        Ok(())
    }
}

async fn serve(flaky: &Flaky, address: &str) -> Result<RunningServer, String> {
    let served = flaky.serve(address).await;
    served.map_err(|error| error.to_string())
}

fn url(server: &RunningServer) -> Result<String, String> {
    let address = server.local_addr().ok_or("a server without an address")?;
    Ok(format!("http://{address}"))
}
