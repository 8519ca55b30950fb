//! Who the serving end is: a key that it makes for a run, and that the client is told by the controller. Keys without a
//! certificate around them (RFC 7250) need neither names nor dates, and nothing that parses them.

use framegauge_linux::{OsError, Result};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, PeerMisbehaved, ServerConfig,
    SignatureScheme,
};
use std::sync::Arc;

/// What both ends say they speak (ALPN, which RFC 9001 section 8.1 demands).
const PROTOCOL: &[u8] = b"framegauge";
/// The client asks for it; a key has no names to compare it with.
pub(super) const NAME: &str = "framegauge";

/// The public key of a serving end (SubjectPublicKeyInfo, RFC 5280 section 4.1.2.7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(pub Vec<u8>);

fn failed(operation: &str, error: impl std::fmt::Display) -> OsError {
    OsError { operation: format!("{operation}: {error}"), source: std::io::ErrorKind::Other.into() }
}

/// A new key, and the TLS of whoever has it.
pub(super) fn serving() -> Result<(Key, QuicServerConfig)> {
    let operation = "make a key for QUIC";
    let random = ring::rand::SystemRandom::new();
    let pair =
        ring::signature::Ed25519KeyPair::generate_pkcs8(&random).map_err(|error| failed(operation, error))?;
    let signs = provider::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(pair.as_ref()))
        .map_err(|error| failed(operation, error))?;
    let public = signs.public_key().ok_or_else(|| failed(operation, "it has no public half"))?.to_vec();
    let certified = CertifiedKey::new(vec![CertificateDer::from(public.clone())], signs);
    let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::new(certified));
    let mut tls = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| failed(operation, error))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok((Key(public), QuicServerConfig::try_from(tls).map_err(|error| failed(operation, error))?))
}

/// The TLS of a client that talks to the owner of `key` and nobody else.
pub(super) fn asking(key: &Key) -> Result<QuicClientConfig> {
    let operation = "set up a client of QUIC";
    let provider = Arc::new(provider::default_provider());
    let verifier = Known { key: key.clone(), provider: provider.clone() };
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| failed(operation, error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    QuicClientConfig::try_from(tls).map_err(|error| failed(operation, error))
}

/// Accepts one key.
#[derive(Debug)]
struct Known {
    key: Key,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Error> {
        if end_entity.as_ref() == self.key.0 {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        Err(PeerMisbehaved::SelectedUnofferedCipherSuite.into()) // QUIC has TLS 1.3 alone (RFC 9001 section 4.2)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(certificate.as_ref()),
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
