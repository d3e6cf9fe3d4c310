//! Cases about the load that a server reports.

use quill::types::google::protobuf::Duration;

use super::payload::{check_answer, ping, requests};
use super::{Caller, Failure, equal};
use crate::load::{asked, read};
use crate::proto::grpc::testing::{SimpleRequest, TestOrcaReport};
use crate::proto::xds::service::orca::v3::OrcaLoadReportRequest;

/// Reports of an older load may come first.
const OLDER_REPORTS_MAX: usize = 3;

impl Caller {
    pub(super) async fn orca_per_rpc(&self) -> Result<(), Failure> {
        let report = TestOrcaReport {
            request_cost: [("cost".to_owned(), 3456.32)].into_iter().collect(),
            ..load(0.8210, 0.5847, 0.30499)
        };
        let request = SimpleRequest {
            orca_per_query_report: report.clone().into(),
            ..Default::default()
        };
        let answer = self.test.unary_call(request).await?;
        equal("the report", read(answer.trailers())?, asked(report))
    }

    pub(super) async fn orca_oob(&self) -> Result<(), Failure> {
        let every_second = OrcaLoadReportRequest {
            report_interval: Duration {
                seconds: 1,
                ..Default::default()
            }
            .into(),
            ..Default::default()
        };
        let mut reports = self
            .load
            .stream_core_metrics(every_second)
            .await?
            .into_inner();
        let loads = [load(0.8210, 0.5847, 0.30499), load(0.29309, 0.2, 0.2039)];
        let (sender, requests) = requests();
        let mut asking = loads.iter().map(|report| {
            let mut request = ping((0, 1));
            request.orca_oob_report = report.clone().into();
            request
        });
        // As in ping_pong, the first goes before the head is waited for.
        if let Some(request) = asking.next() {
            sender.send(request).await?;
        }
        let mut answers = self.test.full_duplex_call(requests).await?.into_inner();
        for report in &loads {
            check_answer(answers.message().await?, 1)?;
            let mut seen = reports.message().await?;
            for _ in 0..OLDER_REPORTS_MAX {
                if seen.as_ref() == Some(&asked(report.clone())) {
                    break;
                }
                seen = reports.message().await?;
            }
            equal("the server's load", seen, Some(asked(report.clone())))?;
            if let Some(request) = asking.next() {
                sender.send(request).await?;
            }
        }
        Ok(())
    }
}

fn load(cpu: f64, memory: f64, named: f64) -> TestOrcaReport {
    TestOrcaReport {
        cpu_utilization: cpu,
        memory_utilization: memory,
        utilization: [("util".to_owned(), named)].into_iter().collect(),
        ..Default::default()
    }
}
