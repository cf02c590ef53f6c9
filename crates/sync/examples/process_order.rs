//! An order is paid for in several steps, and the client retries. It is charged twice.
//! Safe: a lock for the order, an idempotency record for the charge, and a fence for what is written in the end.

#[path = "common/mod.rs"]
mod common;

use std::sync::atomic::{AtomicU32, Ordering};

use common::{Anything, somebody_else_runs};
use toctou_sync::{Begin, Call, Cells, Error, Fence, Idempotency, LockRequest, Locks, Memory};

static CHARGES: AtomicU32 = AtomicU32::new(0);

async fn charge() {
    somebody_else_runs().await;
    CHARGES.fetch_add(1, Ordering::SeqCst);
}

async fn dangerous(orders: &Memory) -> Result<(), Error> {
    if orders
        .read("order")
        .await?
        .is_some_and(|found| found.value == b"paid")
    {
        return Ok(());
    }
    charge().await;
    orders
        .write_fenced("order", Fence::new(0), b"paid".to_vec())
        .await?;
    Ok(())
}

async fn safe(orders: &Memory) -> Result<String, Error> {
    let guard = orders
        .acquire(LockRequest::new().exclusive("order"))
        .await?;
    // The lock keeps calls apart that run at the same time; the record, those that come later, after a crash too.
    let answer = match orders
        .begin(Call::new("charge for order", b"25.00 EUR"))
        .await?
    {
        Begin::First(ticket) => {
            charge().await;
            ticket.complete(*b"receipt 1").await?;
            "receipt 1".to_owned()
        }
        Begin::Replay(receipt) => String::from_utf8_lossy(&receipt).into_owned(),
        Begin::Unknown => return Err(Error::Invalid("ask the bank whether it was charged".into())),
        Begin::OtherArguments => return Err(Error::Invalid("the price has changed".into())),
        Begin::InFlight => {
            return Err(Error::Busy {
                what: "the order".into(),
            });
        }
    };
    // A holder that was paused so long that it lost the lock is refused here.
    orders
        .write_fenced("order", guard.fence(), b"paid".to_vec())
        .await?;
    guard.release().await?;
    Ok(answer)
}

pub async fn example() -> Anything {
    let orders = Memory::default();
    let (a, b) = tokio::join!(dangerous(&orders), dangerous(&orders));
    a?;
    b?;
    let charges = CHARGES.swap(0, Ordering::SeqCst);
    println!("dangerous: charged {charges} times");
    assert_eq!(charges, 2);

    let orders = Memory::default();
    let (a, b) = tokio::join!(safe(&orders), safe(&orders));
    let retry = safe(&orders).await?;
    let charges = CHARGES.swap(0, Ordering::SeqCst);
    println!("safe: charged {charges} time, all three calls have {retry}");
    assert_eq!((charges, a?, b?), (1, retry.clone(), retry));
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
