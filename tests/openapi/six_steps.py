"""The six steps with the client that openapi-python-client makes. Runs in the folder of its package; HUNDI_URL and
HUNDI_API_KEY name a test server."""

import os
import sys
import time
import uuid

sys.path.insert(0, ".")
from hundi_client import AuthenticatedClient
from hundi_client.api.beneficiaries import create_beneficiary, get_beneficiary
from hundi_client.api.quote_locks import create_quote_lock
from hundi_client.api.senders import create_sender
from hundi_client.api.test_helpers import test_deposit_transfer
from hundi_client.api.transfers import create_transfer, get_transfer, list_transfers
from hundi_client.models import (
    ApiError,
    BeneficiaryStatus,
    CreateBeneficiary,
    CreateBeneficiaryAccountType,
    CreateQuoteLock,
    CreateQuoteLockBuyCurrency,
    CreateQuoteLockSellCurrency,
    CreateSender,
    CreateSenderType,
    CreateTransfer,
    CreateTransferCurrency,
    CreateTransferFunding,
    CreateTransferFundingAsset,
    CreateTransferFundingChain,
    CreateTransferFundingRail,
    CreateTransferPayoutCurrency,
    SimulateDeposit,
    TransferStatus,
)

SECONDS_MAX = 60
client = AuthenticatedClient(os.environ["HUNDI_URL"], os.environ["HUNDI_API_KEY"])


def post(operation, *ids, body):
    answer = operation.sync(*ids, client=client, body=body, idempotency_key=str(uuid.uuid4()))
    assert answer is not None and not isinstance(answer, ApiError), answer
    return answer


def wait(operation, id, status):
    end = time.monotonic() + SECONDS_MAX
    while True:
        found = operation.sync(id, client=client)
        if found.status == status:
            return found
        assert time.monotonic() < end, f"{id} stays {found.status}"
        time.sleep(0.05)


beneficiary = post(
    create_beneficiary,
    body=CreateBeneficiary(
        name="Asha Rao",
        account_number="50100012345678",
        ifsc="HDFC0000001",
        account_type=CreateBeneficiaryAccountType.NRE,
        email="asha@example.com",
        phone="+919820012345",
    ),
)
wait(get_beneficiary, beneficiary.id, BeneficiaryStatus.ACTIVE)
sender = post(create_sender, body=CreateSender(name="Ravi Rao", type_=CreateSenderType.INDIVIDUAL, country="AE"))
lock = post(
    create_quote_lock,
    body=CreateQuoteLock(
        sell_currency=CreateQuoteLockSellCurrency.USD, buy_currency=CreateQuoteLockBuyCurrency.INR, amount="1000.00"
    ),
)
transfer = post(
    create_transfer,
    body=CreateTransfer(
        sender_id=sender.id,
        beneficiary_id=beneficiary.id,
        quote_lock_id=lock.id,
        amount="1000.00",
        currency=CreateTransferCurrency.USD,
        payout_currency=CreateTransferPayoutCurrency.INR,
        funding=CreateTransferFunding(
            rail=CreateTransferFundingRail.STABLECOIN,
            asset=CreateTransferFundingAsset.USDT,
            chain=CreateTransferFundingChain.TRON,
        ),
    ),
)
deposit = post(test_deposit_transfer, transfer.id, body=SimulateDeposit())
assert deposit.transfer_id == transfer.id
settled = wait(get_transfer, transfer.id, TransferStatus.PAYOUT_SETTLED)
assert settled.payout.unique_transaction_reference.startswith("TEST"), settled.payout
assert [found.id for found in list_transfers.sync(client=client, limit=1).data] == [transfer.id]

# A refusal is read as one.
refused = create_sender.sync(
    client=client,
    body=CreateSender(name="", type_=CreateSenderType.INDIVIDUAL, country="AE"),
    idempotency_key=str(uuid.uuid4()),
)
assert isinstance(refused, ApiError) and refused.errors[0].code == "parameter_empty", refused
print(f"Python: {settled.id} was paid with {settled.payout.unique_transaction_reference}")
