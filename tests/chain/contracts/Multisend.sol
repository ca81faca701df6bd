// SPDX-License-Identifier: MIT
// Several token transfers in one transaction, and transactions that fail after or between them.
pragma solidity ^0.8.37;

interface Movable {
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

contract Multisend {
    // Moves the caller's tokens, which it has approved; each transfer is a log of its own.
    function send(address token, address[] calldata recipients, uint256[] calldata values) external {
        _send(token, recipients, values);
    }

    // Does the same, and then fails as a whole: nothing of it may ever be seen.
    function sendAndRevert(address token, address[] calldata recipients, uint256[] calldata values) external {
        _send(token, recipients, values);
        revert("reverted on purpose");
    }

    function _send(address token, address[] calldata recipients, uint256[] calldata values) private {
        require(recipients.length == values.length, "lengths differ");
        for (uint256 i = 0; i < recipients.length; i++) {
            Movable(token).transferFrom(msg.sender, recipients[i], values[i]);
        }
    }
}
