//! TLS 1.3 by libp2p's certificates, with AES before ChaCha20, over a socket that is read in large pieces.
//!
//! libp2p's own TLS upgrade offers ChaCha20-Poly1305 first, which on CPUs with AES instructions costs a third of all
//! time spent on a stream, and does not let us reorder. So the rustls configuration is made here; what proves a peer
//! (the certificate, its extension, its signatures) stays with [`libp2p::tls::certificate`]. Both ends of this upgrade
//! speak the protocol of the libp2p specification ("tls/tls.md"). TLS before Noise, because Noise knows ChaCha20 only.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::io::{AsyncRead, AsyncWrite, BufReader};
use futures_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use libp2p::PeerId;
use libp2p::core::UpgradeInfo;
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade};
use libp2p::identity::Keypair;
use libp2p::tls::certificate;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, CommonState, DigitallySignedStruct, DistinguishedName, ServerConfig,
    SignatureScheme,
};

/// Ciphertext taken from the socket at once; rustls itself asks for 4 KiB.
const READ_BUFFER: usize = 128 << 10;
/// Application protocol of libp2p's TLS.
const ALPN: &[u8] = b"libp2p";

/// The upgrade of a TCP connection.
#[derive(Clone)]
pub(crate) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Tls {
    pub(crate) fn new(keypair: &Keypair) -> Result<Self, io::Error> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: vec![
                cipher_suite::TLS13_AES_128_GCM_SHA256,
                cipher_suite::TLS13_AES_256_GCM_SHA384,
                cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            ],
            ..aws_lc_rs::default_provider()
        });
        let versions = &[&rustls::version::TLS13];
        let (cert, key) = certificate::generate(keypair).map_err(io::Error::other)?;
        let key = provider.key_provider.load_private_key(key).map_err(io::Error::other)?;
        // Not by the builders' shorthands: these read the certificate as one of the web and stop at its extension.
        let shown = Arc::new(SingleCertAndKey::from(CertifiedKey::new(vec![cert], key)));

        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(io::Error::other)?
            // "Dangerous" is any verifier other than that of the web.
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Libp2pCertificates))
            .with_client_cert_resolver(shown.clone());
        client.alpn_protocols = vec![ALPN.to_vec()];
        // Every connection proves its peer anew. All peers share one server name, so a cache would mix them up.
        client.resumption = Resumption::disabled();

        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(io::Error::other)?
            .with_client_cert_verifier(Arc::new(Libp2pCertificates))
            .with_cert_resolver(shown);
        server.alpn_protocols = vec![ALPN.to_vec()];
        server.send_tls13_tickets = 0;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }
}

impl UpgradeInfo for Tls {
    type Info = &'static str;
    type InfoIter = std::iter::Once<Self::Info>;

    fn protocol_info(&self) -> Self::InfoIter {
        std::iter::once("/tls/1.0.0")
    }
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> InboundConnectionUpgrade<C> for Tls {
    type Output = (PeerId, TlsStream<BufReader<C>>);
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Output>>;

    fn upgrade_inbound(self, socket: C, _: Self::Info) -> Self::Future {
        Box::pin(async move {
            let socket = BufReader::with_capacity(READ_BUFFER, socket);
            let stream = TlsAcceptor::from(self.server).accept(socket).await?;
            Ok((peer_of(stream.get_ref().1)?, stream.into()))
        })
    }
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> OutboundConnectionUpgrade<C> for Tls {
    type Output = (PeerId, TlsStream<BufReader<C>>);
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Output>>;

    fn upgrade_outbound(self, socket: C, _: Self::Info) -> Self::Future {
        Box::pin(async move {
            let socket = BufReader::with_capacity(READ_BUFFER, socket);
            // An IP address is never sent as server name; the specification wants none.
            let nobody = ServerName::IpAddress(Ipv4Addr::UNSPECIFIED.into());
            let stream = TlsConnector::from(self.client).connect(nobody, socket).await?;
            Ok((peer_of(stream.get_ref().1)?, stream.into()))
        })
    }
}

/// Whom the handshake has proven. The swarm compares it with whom it dialled.
fn peer_of(connection: &CommonState) -> io::Result<PeerId> {
    match connection.peer_certificates() {
        Some([cert]) => Ok(certificate::parse(cert).map_err(io::Error::other)?.peer_id()),
        _ => Err(io::Error::other("the peer showed no single certificate")),
    }
}

/// Accepts any one certificate that names a libp2p key and is signed by it.
#[derive(Debug)]
struct Libp2pCertificates;

impl Libp2pCertificates {
    fn check(cert: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> Result<(), rustls::Error> {
        // INVARIANT: exactly one certificate, valid now, whose extension is signed by the peer's key.
        if !intermediates.is_empty() {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        certificate::parse(cert).map_err(|_| CertificateError::BadEncoding)?;
        Ok(())
    }
}

/// What both verifiers' traits ask about signatures, in the same words: servers and clients prove themselves alike.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(rustls::Error::General("only TLS 1.3 is spoken here".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            // INVARIANT: the handshake is signed by the certificate's key, so the certificate was not copied.
            certificate::parse(cert)
                .map_err(|_| CertificateError::BadEncoding)?
                .verify_signature(signed.scheme, message, signed.signature())
                .map_err(|_| CertificateError::BadSignature)?;
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            use SignatureScheme as S;
            vec![
                S::ECDSA_NISTP256_SHA256,
                S::ECDSA_NISTP384_SHA384,
                S::ED25519,
                S::RSA_PSS_SHA512,
                S::RSA_PSS_SHA384,
                S::RSA_PSS_SHA256,
            ]
        }
    };
}

impl ServerCertVerifier for Libp2pCertificates {
    fn verify_server_cert(
        &self,
        cert: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Self::check(cert, intermediates).map(|()| ServerCertVerified::assertion())
    }

    signatures!();
}

impl ClientCertVerifier for Libp2pCertificates {
    // Client certificates are offered and mandatory: the trait's defaults.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        cert: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Self::check(cert, intermediates).map(|()| ClientCertVerified::assertion())
    }

    signatures!();
}

#[cfg(test)]
mod tests {
    use futures::{AsyncReadExt, AsyncWriteExt};
    use libp2p::tls;
    use rustls::CipherSuite;
    use tokio_util::compat::TokioAsyncReadCompatExt;

    use super::*;

    fn keys() -> (Keypair, Keypair) {
        (Keypair::generate_secp256k1(), Keypair::generate_secp256k1())
    }

    #[tokio::test]
    async fn both_ends_learn_whom_they_talk_to_and_choose_aes() {
        let (a, b) = keys();
        let (left, right) = tokio::io::duplex(1 << 16);
        let (dialled, accepted) = futures::future::join(
            Tls::new(&a).unwrap().upgrade_outbound(left.compat(), "/tls/1.0.0"),
            Tls::new(&b).unwrap().upgrade_inbound(right.compat(), "/tls/1.0.0"),
        )
        .await;
        let ((to, mut left), (from, mut right)) = (dialled.unwrap(), accepted.unwrap());
        assert_eq!((to, from), (b.public().to_peer_id(), a.public().to_peer_id()));
        let suite = left.get_ref().1.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(suite, CipherSuite::TLS13_AES_128_GCM_SHA256);
        left.write_all(b"hello").await.unwrap();
        left.flush().await.unwrap();
        let mut got = [0; 5];
        right.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"hello");
    }

    #[tokio::test]
    async fn the_stock_upgrade_of_libp2p_understands_ours_both_ways() {
        let (a, b) = keys();
        let (left, right) = tokio::io::duplex(1 << 16);
        let (dialled, accepted) = futures::future::join(
            tls::Config::new(&a).unwrap().upgrade_outbound(left.compat(), "/tls/1.0.0"),
            Tls::new(&b).unwrap().upgrade_inbound(right.compat(), "/tls/1.0.0"),
        )
        .await;
        assert_eq!((dialled.unwrap().0, accepted.unwrap().0), (b.public().to_peer_id(), a.public().to_peer_id()));
        let (left, right) = tokio::io::duplex(1 << 16);
        let (dialled, accepted) = futures::future::join(
            Tls::new(&a).unwrap().upgrade_outbound(left.compat(), "/tls/1.0.0"),
            tls::Config::new(&b).unwrap().upgrade_inbound(right.compat(), "/tls/1.0.0"),
        )
        .await;
        assert_eq!((dialled.unwrap().0, accepted.unwrap().0), (b.public().to_peer_id(), a.public().to_peer_id()));
    }

    /// A thief that shows a certificate without having its key must fail, as server and as client.
    #[tokio::test]
    async fn a_stolen_certificate_proves_nothing() {
        let (honest, victim) = keys();
        let (stolen, _) = certificate::generate(&victim).unwrap();
        let (_, own_key) = certificate::generate(&honest).unwrap();
        let own_key = aws_lc_rs::sign::any_ecdsa_type(&own_key).unwrap();
        let single = Arc::new(SingleCertAndKey::from(CertifiedKey::new(vec![stolen], own_key)));
        let mut thief = Tls::new(&victim).unwrap();
        Arc::get_mut(&mut thief.server).unwrap().cert_resolver = single.clone();
        Arc::get_mut(&mut thief.client).unwrap().client_auth_cert_resolver = single;

        let (left, right) = tokio::io::duplex(1 << 16);
        let (dialled, _) = futures::future::join(
            Tls::new(&honest).unwrap().upgrade_outbound(left.compat(), "/tls/1.0.0"),
            thief.clone().upgrade_inbound(right.compat(), "/tls/1.0.0"),
        )
        .await;
        assert!(dialled.is_err());
        let (left, right) = tokio::io::duplex(1 << 16);
        let (_, accepted) = futures::future::join(
            thief.upgrade_outbound(left.compat(), "/tls/1.0.0"),
            Tls::new(&honest).unwrap().upgrade_inbound(right.compat(), "/tls/1.0.0"),
        )
        .await;
        assert!(accepted.is_err());
    }

    #[test]
    fn no_flipped_bit_makes_a_certificate_name_somebody_else() {
        let owner = Keypair::generate_secp256k1();
        let (cert, _) = certificate::generate(&owner).unwrap();
        assert!(Libp2pCertificates::check(&cert, &[]).is_ok());
        assert!(Libp2pCertificates::check(&cert, std::slice::from_ref(&cert)).is_err());
        let mut refused = 0;
        for at in 0..cert.len() {
            let mut bad = cert.to_vec();
            bad[at] ^= 1;
            // Bytes outside what is signed may pass: the outer copy of the algorithm's name, padding.
            match certificate::parse(&bad.into()) {
                Ok(parsed) => assert_eq!(parsed.peer_id(), owner.public().to_peer_id(), "byte {at}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > cert.len() * 9 / 10, "{refused} of {}", cert.len());
    }
}
