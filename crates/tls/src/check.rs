//! How much is asked of a server's certificate: by PostgreSQL's `sslmode`, not always all.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::Authorities;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    /// Nothing: whoever answers is believed.
    Nothing,
    /// That an authority stands for it, whatever its name.
    Authority,
    /// The name, too.
    Name,
}

pub(crate) struct Check {
    algorithms: WebPkiSupportedAlgorithms,
    authorities: Authorities,
    checks: Checks,
}

impl Check {
    pub(crate) fn new(
        provider: &Arc<CryptoProvider>,
        authorities: Authorities,
        checks: Checks,
    ) -> Self {
        Self {
            algorithms: provider.signature_verification_algorithms,
            authorities,
            checks,
        }
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Check").field(&self.checks).finish()
    }
}

impl ServerCertVerifier for Check {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.checks == Checks::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        let parsed = ParsedCertificate::try_from(certificate)?;
        // A self-signed certificate is often marked as that of an authority, which the library takes from no server. Here
        // somebody has named this very one.
        if !self.authorities.named.contains(certificate) {
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &self.authorities.roots,
                others,
                now,
                self.algorithms.all,
            )?;
        }
        if self.checks == Checks::Name {
            verify_server_name(&parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    // Whoever presents a certificate must have its key, also where nothing else is asked.

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
