// SPDX-License-Identifier: MIT
// A token that shows the watcher what USDT on TRON shows: six decimals unless told otherwise, fees, a black list, and its own deprecation.
pragma solidity ^0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

contract Token is ERC20 {
    event Deprecate(address newAddress);
    event Params(uint256 feeBasisPoints, uint256 maxFee);
    event AddedBlackList(address indexed user);
    event DestroyedBlackFunds(address indexed user, uint256 balance);

    address public owner;
    bool public deprecated;
    address public upgradedAddress;
    uint256 public basisPointsRate;
    uint256 public maximumFee;
    mapping(address => bool) public isBlackListed;
    uint8 private _decimals = 6;

    // Every holder begins with the same amount; the first one owns the contract and gets the fees.
    constructor(string memory name_, string memory symbol_, address[] memory holders, uint256 each) ERC20(name_, symbol_) {
        owner = holders[0];
        for (uint256 i = 0; i < holders.length; i++) {
            _mint(holders[i], each);
        }
    }

    function decimals() public view override returns (uint8) {
        return _decimals;
    }

    // Other tokens count in other units.
    function setDecimals(uint8 count) external {
        _decimals = count;
    }

    function transfer(address to, uint256 value) public override returns (bool) {
        require(!isBlackListed[_msgSender()], "black-listed");
        if (deprecated) {
            return Token(upgradedAddress).transferByLegacy(_msgSender(), to, value);
        }
        _move(_msgSender(), to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) public override returns (bool) {
        require(!isBlackListed[from], "black-listed");
        _spendAllowance(from, _msgSender(), value);
        _move(from, to, value);
        return true;
    }

    // What a deprecated token calls on its successor. Anyone may call it here: nothing is at stake.
    function transferByLegacy(address from, address to, uint256 value) external returns (bool) {
        _move(from, to, value);
        return true;
    }

    // The recipient's Transfer carries the net amount, and a second one goes to the owner.
    function _move(address from, address to, uint256 value) private {
        uint256 fee = (value * basisPointsRate) / 10000;
        if (fee > maximumFee) {
            fee = maximumFee;
        }
        _transfer(from, to, value - fee);
        if (fee > 0) {
            _transfer(from, owner, fee);
        }
    }

    function deprecate(address successor) external {
        deprecated = true;
        upgradedAddress = successor;
        emit Deprecate(successor);
    }

    function setParams(uint256 basisPoints, uint256 feeMax) external {
        basisPointsRate = basisPoints;
        maximumFee = feeMax;
        emit Params(basisPoints, feeMax);
    }

    function addBlackList(address user) external {
        isBlackListed[user] = true;
        emit AddedBlackList(user);
    }

    // The original takes the balance without a Transfer. Burning would show one, so here the funds stay and only the event is shown.
    function destroyBlackFunds(address user) external {
        require(isBlackListed[user], "not black-listed");
        emit DestroyedBlackFunds(user, balanceOf(user));
    }
}
