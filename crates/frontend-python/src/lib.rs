//! Python source to code IR.
