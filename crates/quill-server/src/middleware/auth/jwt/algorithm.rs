//! How tokens may be signed.

/// How a token may be signed (RFC 7518, section 3.1; RFC 8037). There is no `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// HMAC with SHA-256: whoever can check a token can make one.
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    Rs256,
    /// RSA (PKCS #1 v1.5) with SHA-384.
    Rs384,
    /// RSA (PKCS #1 v1.5) with SHA-512.
    Rs512,
    /// RSA (PSS) with SHA-256.
    Ps256,
    /// RSA (PSS) with SHA-384.
    Ps384,
    /// RSA (PSS) with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Those with a public key, of which a validator allows all unless told otherwise.
    pub const ASYMMETRIC: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Those with a shared secret.
    pub const SYMMETRIC: [Self; 3] = [Self::Hs256, Self::Hs384, Self::Hs512];

    /// The name that stands in tokens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Hs384 => "HS384",
            Self::Hs512 => "HS512",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of this name, which is case-sensitive.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ASYMMETRIC.into_iter().chain(Self::SYMMETRIC);
        all.find(|algorithm| algorithm.name() == name)
    }
}
