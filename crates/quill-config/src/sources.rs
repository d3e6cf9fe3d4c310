//! Where settings come from.

use std::ffi::OsString;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::error::ConfigError;
use crate::keys::keys;
use crate::node::{Node, Place};
use crate::reader::Reader;
use crate::variables::{first_line, is_of_kubernetes, overlay};

/// Most bytes of the file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A file's text and the environment's variables, before they are read.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    name: String,
    folder: PathBuf,
    text: String,
    prefix: String,
    variables: Vec<(String, String)>,
}

impl Sources {
    /// No file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A YAML file of up to 1 MiB.
    ///
    /// # Errors
    /// It can't be read, or is too long.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let wrong = |message: String| ConfigError::new(name.clone(), String::new(), message);
        let metadata = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
        if metadata.len() > FILE_BYTES_MAX {
            return Err(wrong("it has more than 1 MiB".to_owned()));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            ..Self::text(name, text)
        })
    }

    /// YAML by hand, and what errors call it.
    #[must_use]
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            ..Self::default()
        }
    }

    /// Lets variables whose names begin with `prefix` win over the file: after it the
    /// key in capitals, with `__` between nested ones (`APP_LIMITS__BODY` is
    /// `limits.body`). What begins with `[` or `{` is YAML, any other value the text
    /// itself, and an empty one takes the key out of the file.
    ///
    /// A variable of that prefix that is no key is refused as one of the file is; but
    /// those that Kubernetes makes for a service of that name, or of one that begins so
    /// (`APP_PORT`, `APP_CANARY_SERVICE_HOST`…), are passed over.
    #[must_use]
    pub fn with_variables<N: Into<OsString>, V: Into<OsString>>(
        mut self,
        prefix: &str,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        prefix.clone_into(&mut self.prefix);
        let variables = variables.into_iter();
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let named = variables.filter_map(|(name, value): (OsString, OsString)| {
            let name = name.into_string().ok()?;
            // What is no text is no value of any key, and says so there.
            let value = value.to_string_lossy().into_owned();
            name.starts_with(prefix).then_some((name, value))
        });
        self.variables = named.collect();
        // So that the same environment gives the same error each time.
        self.variables.sort();
        self
    }

    /// With the process's own environment; see [`with_variables`](Self::with_variables).
    #[must_use]
    pub fn with_environment(self, prefix: &str) -> Self {
        self.with_variables(prefix, std::env::vars_os())
    }

    /// Makes the value.
    ///
    /// # Errors
    /// The file is no YAML, or the first key that is not known or not well.
    pub fn read<T: DeserializeOwned>(mut self) -> Result<Read<T>, ConfigError> {
        self.pass_over_kubernetes::<T>();
        let settings = self.settings()?;
        let read = Read {
            value: (),
            name: self.name,
            folder: self.folder,
            settings,
        };
        let value = T::deserialize(Reader::new(&read.settings));
        let value = value.map_err(|fault| fault.told::<T>(&read))?;
        Ok(read.map(|()| value))
    }

    /// Leaves out the variables that Kubernetes made, but for those that are keys.
    fn pass_over_kubernetes<T: DeserializeOwned>(&mut self) {
        let prefix = &self.prefix;
        let is_made = |name: &str| name.strip_prefix(prefix).is_some_and(is_of_kubernetes);
        if !self.variables.iter().any(|(name, _)| is_made(name)) {
            return;
        }
        let keys = keys::<T>();
        let own: Vec<_> = keys.iter().filter_map(|key| key.variable(prefix)).collect();
        self.variables
            .retain(|(name, _)| !is_made(name) || own.contains(name));
    }

    fn settings(&self) -> Result<Node, ConfigError> {
        let mut settings = match self.has_text() {
            false => Node::empty(),
            true => Node::yaml(&self.text).map_err(|error| {
                let line = error.location().map(|at| format!(":{}", at.line()));
                let place = self.name.clone() + &line.unwrap_or_default();
                ConfigError::new(place, String::new(), first_line(&error))
            })?,
        };
        // What is nowhere in the file is in no line of it.
        settings.place = Place::Line(0);
        for (variable, value) in &self.variables {
            overlay(&mut settings, &self.prefix, variable, value)?;
        }
        Ok(settings)
    }

    /// Whether the file says anything: one of comments alone does not.
    fn has_text(&self) -> bool {
        let mut lines = self.text.lines().map(str::trim_start);
        lines.any(|line| !line.is_empty() && !line.starts_with('#'))
    }
}

/// Settings that were read, and where each of them stands.
#[derive(Clone)]
pub struct Read<T> {
    /// The settings.
    pub value: T,
    name: String,
    folder: PathBuf,
    settings: Node,
}

impl<T> Read<T> {
    /// An error about a key, such as `tls.key` or `rate_limits[0].rate`, found only when
    /// it was used.
    #[must_use]
    pub fn error(&self, key: &str, message: impl fmt::Display) -> ConfigError {
        let place = self.shown(self.settings.place_of(key));
        ConfigError::new(place, key.to_owned(), message.to_string())
    }

    /// What was said of a key, if it is within what is allowed.
    ///
    /// # Errors
    /// It is not: also what is no number is within nothing.
    pub fn bounded<V: PartialOrd + fmt::Debug>(
        &self,
        key: &str,
        said: Option<V>,
        allowed: impl RangeBounds<V>,
    ) -> Result<Option<V>, ConfigError> {
        match said {
            Some(value) if !allowed.contains(&value) => {
                let allowed = shown_range(&allowed);
                Err(self.error(
                    key,
                    format!("{value:?} can't be used: allowed is {allowed}"),
                ))
            }
            said => Ok(said),
        }
    }

    /// Refuses an address with a login in it: settings are shown, and secrets are in files.
    ///
    /// # Errors
    /// It has an `@`; the error does not show it.
    pub fn without_login(&self, key: &str, address: &str) -> Result<(), ConfigError> {
        // The name of a socket's file may have one.
        if address.starts_with("unix:") || !address.contains('@') {
            return Ok(());
        }
        let wrong = "an address with a name or a password before an @ can't be used: \
                     settings hold no secrets (in a path, write %40)";
        Err(self.error(key, wrong))
    }

    /// A path that a setting names: relative ones are from the file's folder.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.join(path)
    }

    /// The same with another value, made of this one.
    fn map<U>(self, make: impl FnOnce(T) -> U) -> Read<U> {
        Read {
            value: make(self.value),
            name: self.name,
            folder: self.folder,
            settings: self.settings,
        }
    }

    /// A place as people write it.
    pub(crate) fn shown(&self, place: &Place) -> String {
        match place {
            Place::Line(0) => self.name.clone(),
            Place::Line(line) => format!("{}:{line}", self.name),
            Place::Variable(name) => name.to_string(),
        }
    }
}

/// Bounds as people write them.
fn shown_range<V: fmt::Debug>(range: &impl RangeBounds<V>) -> String {
    let (start, end) = (range.start_bound(), range.end_bound());
    if let (Bound::Included(least), Bound::Included(most)) = (start, end) {
        return format!("{least:?} to {most:?}");
    }
    let least = match start {
        Bound::Included(least) => Some(format!("{least:?} or more")),
        Bound::Excluded(least) => Some(format!("more than {least:?}")),
        Bound::Unbounded => None,
    };
    let most = match end {
        Bound::Included(most) => Some(format!("up to {most:?}")),
        Bound::Excluded(most) => Some(format!("less than {most:?}")),
        Bound::Unbounded => None,
    };
    let parts: Vec<_> = least.into_iter().chain(most).collect();
    parts.join(" and ")
}

impl<T: fmt::Debug> fmt::Debug for Read<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read")
            .field("name", &self.name)
            .field("value", &self.value)
            .finish_non_exhaustive()
    }
}
