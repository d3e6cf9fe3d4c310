//! What the application says of its services.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Most services that watchers may ask for which never had a status; further
/// ones are told so once, without being kept.
pub(crate) const UNKNOWN_WATCHED_MAX: usize = 1024;

/// The longest name of such a service, in bytes; a longer one is no service's.
const UNKNOWN_NAME_BYTES_MAX: usize = 1024;

/// Whether a service can take calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It can.
    Serving,
    /// It can't, for now.
    NotServing,
}

/// Sets the status of services. Clones set the same.
#[derive(Clone, Debug)]
pub struct HealthReporter(Arc<Mutex<Services>>);

#[derive(Debug, Default)]
struct Services {
    by_name: HashMap<String, watch::Sender<Option<Status>>>,
    unknown: usize,
}

impl HealthReporter {
    /// The server as a whole (the empty name) is serving.
    pub(crate) fn new() -> Self {
        let reporter = Self(Arc::default());
        reporter.set("", Status::Serving);
        reporter
    }

    /// Sets the status of a service by its full name; the empty name is the
    /// server as a whole. Whoever watches it is told.
    pub fn set(&self, service: &str, status: Status) {
        let mut services = self.lock();
        match services.by_name.get(service) {
            Some(sender) => {
                let before = sender.send_replace(Some(status));
                services.unknown -= usize::from(before.is_none());
            }
            None => {
                let sender = watch::Sender::new(Some(status));
                services.by_name.insert(service.to_owned(), sender);
            }
        }
    }

    /// Sets every service that has a status, and the server as a whole: before a
    /// drain, so that load balancers look elsewhere.
    pub fn set_all(&self, status: Status) {
        let services = self.lock();
        for sender in services.by_name.values() {
            if sender.borrow().is_some() {
                sender.send_replace(Some(status));
            }
        }
    }

    /// The status of a service now; `None` when it never had one.
    #[must_use]
    pub fn status(&self, service: &str) -> Option<Status> {
        *self.lock().by_name.get(service)?.borrow()
    }

    /// The statuses of a service from now on; `None` when too many unknown
    /// services are watched already, or this one's name is too long to be kept.
    pub(crate) fn watch(&self, service: &str) -> Option<watch::Receiver<Option<Status>>> {
        let mut services = self.lock();
        if let Some(sender) = services.by_name.get(service) {
            return Some(sender.subscribe());
        }
        if service.len() > UNKNOWN_NAME_BYTES_MAX {
            return None;
        }
        if services.unknown >= UNKNOWN_WATCHED_MAX {
            services.forget_unwatched();
        }
        if services.unknown >= UNKNOWN_WATCHED_MAX {
            return None;
        }
        let sender = watch::Sender::new(None);
        let receiver = sender.subscribe();
        services.unknown += 1;
        services.by_name.insert(service.to_owned(), sender);
        Some(receiver)
    }

    fn lock(&self) -> MutexGuard<'_, Services> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Services {
    /// Drops unknown services that nobody watches any more.
    fn forget_unwatched(&mut self) {
        self.by_name
            .retain(|_, sender| sender.borrow().is_some() || !sender.is_closed());
        let unknown = self.by_name.values().filter(|s| s.borrow().is_none());
        self.unknown = unknown.count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_set_by_name_and_all_at_once() {
        let reporter = HealthReporter::new();
        assert_eq!(reporter.status(""), Some(Status::Serving));
        assert_eq!(reporter.status("a.B"), None);
        reporter.set("a.B", Status::Serving);
        reporter.set_all(Status::NotServing);
        assert_eq!(reporter.status("a.B"), Some(Status::NotServing));
        assert_eq!(reporter.status(""), Some(Status::NotServing));
    }

    #[test]
    fn a_long_name_is_kept_for_the_application_alone() {
        let reporter = HealthReporter::new();
        let long = "x".repeat(UNKNOWN_NAME_BYTES_MAX + 1);
        assert!(reporter.watch(&long).is_none());
        assert_eq!(reporter.lock().by_name.len(), 1);
        assert!(reporter.watch(&long[1..]).is_some());
        reporter.set(&long, Status::Serving);
        assert!(reporter.watch(&long).is_some());
    }

    #[test]
    fn watched_unknown_services_are_bounded_and_forgotten() {
        let reporter = HealthReporter::new();
        let watchers: Vec<_> = (0..UNKNOWN_WATCHED_MAX)
            .map(|n| reporter.watch(&n.to_string()).unwrap())
            .collect();
        assert!(reporter.watch("one more").is_none());
        drop(watchers);
        assert!(reporter.watch("one more").is_some());
        assert!(reporter.lock().by_name.len() < 10);
    }
}
