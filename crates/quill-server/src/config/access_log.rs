//! A line for each call.

use quill_config::{ConfigError, Read, Size};
use serde::Deserialize;

use super::Settings;
use crate::builder::ServerBuilder;
use crate::log::RequestLogger;

/// As [`RequestLogger`] has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AccessLog {
    format: Option<Form>,
    sample: Option<f64>,
    metadata: Vec<String>,
    all_metadata: bool,
    redact: Vec<String>,
    queue_bytes_max: Option<Size>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    Json,
    Text,
    Off,
}

impl AccessLog {
    pub(super) fn apply<L>(
        &self,
        builder: ServerBuilder<L>,
        read: &Read<Settings>,
    ) -> Result<ServerBuilder<L>, ConfigError> {
        Ok(builder.request_logger(self.logger(read)?))
    }

    fn logger(&self, read: &Read<Settings>) -> Result<RequestLogger, ConfigError> {
        let mut logger = match self.format {
            Some(Form::Json) | None => RequestLogger::json(),
            Some(Form::Text) => RequestLogger::text(),
            Some(Form::Off) => RequestLogger::disabled(),
        };
        if let Some(share) = read.bounded("access_log.sample", self.sample, 0.0..=1.0)? {
            logger = logger.sample(share);
        }
        logger = match self.all_metadata {
            true => logger.all_metadata(),
            false => logger.metadata(&self.metadata),
        };
        logger = logger.redact(&self.redact);
        let auth = read.value.auth.as_ref();
        logger = logger.redact(auth.and_then(|auth| auth.key_header()));
        if let Some(size) = self.queue_bytes_max {
            logger = logger.queue_bytes_max(size.bytes());
        }
        Ok(logger)
    }
}

#[cfg(test)]
mod tests {
    use crate::ServerConfig;

    #[test]
    fn the_header_of_api_keys_is_not_shown() {
        let yaml = "
            access_log: { all_metadata: true }
            auth: { api_keys: { file: keys, header: X-Mine } }";
        let config = ServerConfig::parse("test", yaml).unwrap();
        let log = config.0.value.access_log.as_ref().unwrap();
        let logger = format!("{:?}", log.logger(&config.0).unwrap());
        assert!(logger.contains("redacted: {\"x-mine\"}"), "{logger}");
    }
}
