//! The load that the server reports (gRFC A51): with a call, in its trailers,
//! and outside of calls, as a stream.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use buffa::Message;
use futures_util::stream;
use quill::{Error, Metadata, MetadataError, Request, Response, Stream};
use tokio::sync::OwnedMutexGuard;

use crate::proto::grpc::testing::TestOrcaReport;
use crate::proto::xds::data::orca::v3::OrcaLoadReport;
use crate::proto::xds::service::orca::v3::{OpenRcaService, OrcaLoadReportRequest};

/// The trailer that holds a call's report.
pub(crate) const TRAILER: &str = "endpoint-load-metrics-bin";

/// Nobody gets reports more often than this.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// What the server reports of itself; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    report: Arc<Mutex<OrcaLoadReport>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Load {
    /// Waits until no other call sets the report.
    pub(crate) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    pub(crate) fn set(&self, report: OrcaLoadReport) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    fn report(&self) -> OrcaLoadReport {
        self.report
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// What a request asks to be reported.
pub(crate) fn asked(report: TestOrcaReport) -> OrcaLoadReport {
    OrcaLoadReport {
        cpu_utilization: report.cpu_utilization,
        mem_utilization: report.memory_utilization,
        request_cost: report.request_cost,
        utilization: report.utilization,
        ..Default::default()
    }
}

/// Puts a call's report in its trailers.
pub(crate) fn write(report: &OrcaLoadReport, trailers: &mut Metadata) -> Result<(), MetadataError> {
    trailers.insert_bin(TRAILER, report.encode_to_vec())
}

/// A call's report, from its trailers.
pub(crate) fn read(trailers: &Metadata) -> Result<OrcaLoadReport, String> {
    let bytes = trailers
        .get_bin(TRAILER)
        .ok_or_else(|| format!("there is no {TRAILER} in the trailers"))?;
    OrcaLoadReport::decode_from_slice(bytes).map_err(|error| format!("{TRAILER}: {error}"))
}

/// `xds.service.orca.v3.OpenRcaService`: the server's load, again and again.
#[derive(Clone, Debug)]
pub(crate) struct LoadReports(pub(crate) Load);

impl OpenRcaService for LoadReports {
    async fn stream_core_metrics(
        &self,
        request: Request<OrcaLoadReportRequest>,
    ) -> Result<Response<impl Stream<Item = Result<OrcaLoadReport, Error>> + Send>, Error> {
        let asked = request.into_inner().report_interval.into_option();
        let interval = asked
            .and_then(|interval| Duration::try_from(interval).ok())
            .map_or(INTERVAL_MIN, |asked| asked.max(INTERVAL_MIN));
        let ticks = tokio::time::interval(interval);
        let load = self.0.clone();
        let reports = stream::unfold((ticks, load), |(mut ticks, load)| async move {
            ticks.tick().await;
            Some((Ok(load.report()), (ticks, load)))
        });
        Ok(reports.into())
    }
}
