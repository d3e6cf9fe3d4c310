//! The guide.

pub mod keys {
    //! Keys.
}
