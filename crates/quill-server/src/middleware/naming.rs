//! Methods that the settings of layers name, by path.
//!
//! A rule that names nothing would hold for nothing, and nobody would see: so each
//! spelling means something, and what no method has keeps the server from being built.

use std::cell::RefCell;
use std::sync::Arc;

use quill_core::Method;

use crate::error::ServeError;
use crate::routes::Routes;

/// What a path in a layer's settings names; the leading `/` may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// `/package.Service/Method`: the path of a method.
    Method(String),
    /// `/package.Service/*`: the name of a service.
    Service(String),
    /// `/*`: all that is named in no other way.
    Others,
}

impl Named {
    pub(super) fn read(path: &str) -> Self {
        let name = path.strip_prefix('/').unwrap_or(path);
        if name == "*" {
            return Self::Others;
        }
        match name.strip_suffix("/*") {
            Some(service) => Self::Service(service.to_owned()),
            None => Self::Method(method_path(name)),
        }
    }

    pub(super) fn is_of(&self, method: &Method) -> bool {
        match self {
            Self::Method(path) => method.path() == path,
            Self::Service(name) => method.service() == name,
            Self::Others => true,
        }
    }

    /// What is wrong with a name that none of these methods has.
    fn mistake(&self, routes: &Routes) -> Option<String> {
        let is_service = |name: &str| {
            let mut methods = routes.methods();
            methods.any(|method| method.service() == name)
                || routes.services().iter().any(|service| service == name)
        };
        match self {
            Self::Others => None,
            Self::Method(path) if routes.find(path).is_some() => None,
            Self::Service(name) if is_service(name) => None,
            Self::Service(name) => Some(format!(
                "/{name}/*, and there is no such service: registered are {}",
                services(routes)
            )),
            Self::Method(path) => {
                let service = path.rsplit_once('/').map_or("", |(service, _)| service);
                let service = service.trim_start_matches('/');
                let of_service = routes.methods().filter(|m| m.service() == service);
                let siblings: Vec<&str> = of_service.map(Method::path).collect();
                Some(if siblings.is_empty() {
                    format!(
                        "{path}, and there is no such method: registered are the services {}",
                        services(routes)
                    )
                } else {
                    let siblings = siblings.join(", ");
                    format!("{path}, and there is no such method: registered are {siblings}")
                })
            }
        }
    }
}

/// Which of these methods are named, by the number of their route.
///
/// # Errors
/// A name that none of them has; `what` names it.
pub(crate) fn named(
    what: &str,
    paths: &[String],
    routes: &Routes,
) -> Result<Vec<bool>, ServeError> {
    let names: Vec<Named> = paths.iter().map(|path| Named::read(path)).collect();
    if let Some(mistake) = names.iter().find_map(|name| name.mistake(routes)) {
        return Err(ServeError::setting(format!("{what} names {mistake}")));
    }
    let is_named = |method: &Method| names.iter().any(|name| name.is_of(method));
    Ok(routes.methods().map(is_named).collect())
}

/// The path of a method, whose leading `/` may be missing.
pub(super) fn method_path(path: &str) -> String {
    let name = path.strip_prefix('/').unwrap_or(path);
    format!("/{name}")
}

fn services(routes: &Routes) -> String {
    let mut names: Vec<&str> = routes.methods().map(Method::service).collect();
    names.sort_unstable();
    names.dedup();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

/// The methods of a server whose layers are being put together, and what the first
/// layer that names none of them named.
struct Building {
    routes: Arc<Routes>,
    mistake: Option<String>,
}

thread_local! {
    /// Layers are put together in one go, on one thread, and what is between them may
    /// be anybody's: this is how those here see the methods nevertheless.
    static BUILDING: RefCell<Option<Building>> = const { RefCell::new(None) };
}

/// Puts the layers of these methods together.
///
/// # Errors
/// One of them names a method or a service that is not among them.
pub(crate) fn build_for<T>(
    routes: &Arc<Routes>,
    build: impl FnOnce() -> T,
) -> Result<T, ServeError> {
    let building = Building {
        routes: Arc::clone(routes),
        mistake: None,
    };
    let around = BUILDING.replace(Some(building));
    let built = build();
    let building = BUILDING.replace(around);
    match building.and_then(|building| building.mistake) {
        Some(mistake) => Err(ServeError::setting(mistake)),
        None => Ok(built),
    }
}

/// Holds what a `layer` names against the methods of the server it is put into; one
/// that is put elsewhere can't be held against any.
pub(super) fn check(layer: &str, names: impl IntoIterator<Item = Named>) {
    BUILDING.with_borrow_mut(|building| {
        let Some(Building { routes, mistake }) = building else {
            return;
        };
        // In the same order each time.
        let wrong = names
            .into_iter()
            .filter_map(|name| name.mistake(routes))
            .min();
        if let Some(wrong) = wrong {
            mistake.get_or_insert(format!("{layer} has a rule for {wrong}"));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_same_with_and_without_its_slash() {
        let method = Named::Method("/a.B/C".to_owned());
        let service = Named::Service("a.B".to_owned());
        for (path, named) in [
            ("/a.B/C", &method),
            ("a.B/C", &method),
            ("/a.B/*", &service),
            ("a.B/*", &service),
            ("/*", &Named::Others),
            ("*", &Named::Others),
        ] {
            assert_eq!(Named::read(path), *named, "{path}");
        }
    }
}
