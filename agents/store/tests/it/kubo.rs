//! The store over a real IPFS daemon, and over what is none.

use bytes::Bytes;
use tensorlink_node::ports::{Net, Store, StoreError};
use tensorlink_store::unixfs::CHUNK;
use tensorlink_store::{Content, Kubo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::daemon::Daemon;
use crate::memory_net::Hub;
use crate::support::{LIMIT, Node, content};

#[tokio::test(flavor = "multi_thread")]
async fn embedded_and_kubo_give_the_same_cids_and_the_same_bytes() {
    let Some(daemon) = Daemon::start("embedded_and_kubo_give_the_same_cids_and_the_same_bytes").await else { return };
    let hub = Hub::default();
    let embedded = Node::start(&hub, 1, LIMIT).await;
    let net = hub.node(2);
    let folder = tempfile::tempdir().unwrap();
    let backend = Kubo::connect(&daemon.url, folder.path(), LIMIT).await.unwrap();
    let kubo = Content::start(backend, net.clone(), CancellationToken::new()).await.unwrap();
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 45 << 20] {
        let file = content(len, 7);
        let cid = embedded.store.put(file.clone()).await.unwrap();
        // Cut by the daemon itself, without keeping anything.
        assert_eq!(daemon.add(&file, &["--only-hash", "--chunker", "size-262144"]), cid.to_string(), "{len}");
        // From a peer into the daemon, and from there to its own users.
        assert!(!kubo.has(&cid).await.unwrap());
        assert_eq!(kubo.get(&cid, &[embedded.address()], LIMIT).await.unwrap(), file, "{len}");
        assert!(kubo.has(&cid).await.unwrap());
        assert_eq!(daemon.ipfs(&["pin", "ls", "--type", "recursive", "-q", &cid.to_string()]), cid.to_string());
        // And from the daemon to a peer.
        embedded.store.unpin(&cid).await.unwrap();
        assert_eq!(embedded.store.get(&cid, &[net.address()], LIMIT).await.unwrap(), file, "{len}");
        kubo.unpin(&cid).await.unwrap();
        kubo.unpin(&cid).await.unwrap();
        assert!(!kubo.has(&cid).await.unwrap());
        assert_eq!(kubo.put(file).await.unwrap(), cid);
        assert!(kubo.has(&cid).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_others_added_are_read_verified_and_passed_on() {
    let Some(mut daemon) = Daemon::start("files_that_others_added_are_read_verified_and_passed_on").await else {
        return;
    };
    let hub = Hub::default();
    let embedded = Node::start(&hub, 1, LIMIT).await;
    let net = hub.node(2);
    let folder = tempfile::tempdir().unwrap();
    let backend = Kubo::connect(&daemon.url, folder.path(), LIMIT).await.unwrap();
    let kubo = Content::start(backend, net.clone(), CancellationToken::new()).await.unwrap();
    let file = content(3 << 20, 8);
    for options in [
        &["--chunker", "size-1048576"] as &[&str],
        &["--chunker", "size-4096"],
        &["--raw-leaves=false"],
        &["--trickle"],
        &["--chunker", "buzhash"],
    ] {
        let cid = daemon.add(&file, options).parse().unwrap();
        assert_eq!(kubo.get(&cid, &[], LIMIT).await.unwrap(), file, "{options:?}");
        assert_eq!(embedded.store.get(&cid, &[net.address()], LIMIT).await.unwrap(), file, "{options:?}");
        assert!(embedded.store.has(&cid).await.unwrap());
    }
    let folder = daemon.ipfs(&["files", "mkdir", "--cid-version", "1", "/folder"]);
    assert!(folder.is_empty());
    let folder = daemon.ipfs(&["files", "stat", "--hash", "/folder"]).parse().unwrap();
    let error = kubo.get(&folder, &[], LIMIT).await.unwrap_err();
    assert!(matches!(error, StoreError::Unsupported(_)), "{error}");
    let missing = tensorlink_store::unixfs::blocks_of(&Bytes::from_static(b"nobody's"))[0].0;
    let error = kubo.get(&missing, &[], LIMIT).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound(_)), "{error}");
    let kept = kubo.put(Bytes::from_static(b"kept")).await.unwrap();
    // The daemon goes away under us.
    daemon.kill();
    for error in [
        kubo.put(Bytes::from_static(b"x")).await.map(drop).unwrap_err(),
        kubo.get(&missing, &[], LIMIT).await.map(drop).unwrap_err(),
        kubo.has(&missing).await.map(drop).unwrap_err(),
        kubo.unpin(&kept).await.unwrap_err(),
    ] {
        assert!(matches!(&error, StoreError::Backend(text) if text.contains(&daemon.url)), "{error}");
    }
}

#[tokio::test]
async fn urls_that_are_none_and_daemons_that_are_none_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let connect = async |url: &str| Kubo::connect(url, folder.path(), LIMIT).await;
    for url in [
        "",
        "localhost:5001",
        "https://127.0.0.1:5001",
        "/ip4/127.0.0.1/tcp/5001",
        "http://",
        "http://a b",
        "http://[::1",
    ] {
        let error = connect(url).await.map(drop).unwrap_err().to_string();
        assert!(error.contains("no URL of an IPFS daemon"), "{error}");
    }
    // Nobody listens.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = connect(&url).await.map(drop).unwrap_err().to_string();
    assert!(error.contains(&url) && error.contains("ipfs daemon"), "{error}");
    // Something else listens.
    for answer in [
        "garbage\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let error = connect(&url).await.map(drop).unwrap_err().to_string();
        assert!(error.contains(&url) && error.contains("ipfs daemon"), "{error}");
    }
}
