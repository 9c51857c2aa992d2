// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Script} from "forge-std/Script.sol";
import {stdToml} from "forge-std/StdToml.sol";
import {VmSafe} from "forge-std/Vm.sol";

import {Parameters} from "../contracts/types/Parameters.sol";
import {Deployer, Deployment} from "./Deployer.sol";
import {ParametersFile} from "./ParametersFile.sol";

/// @title Deploys the contracts and writes `deploy/<chain id>.toml`
/// @notice Usage: `deploy/README.md`. The key is forge's business (`--account`, `--ledger`, `--unlocked`).
contract Deploy is Deployer, Script {
    using stdToml for string;

    error GenesisMissing(string hint);

    /// @notice Deploys with the parameters of the file that `TENSORLINK_PARAMETERS` names.
    function run() external returns (Deployment memory d) {
        string memory toml = vm.readFile(vm.envOr("TENSORLINK_PARAMETERS", string("deploy/parameters.toml")));
        address[] memory genesis = vm.envOr("TENSORLINK_GENESIS", ",", toml.readAddressArray(".genesis"));
        // INVARIANT: the genesis supply is 3 × 1,000,000 SNO.
        if (genesis.length != 3) revert GenesisMissing("set TENSORLINK_GENESIS to three addresses, comma-separated");
        Parameters memory parameters = parse(toml);

        vm.startBroadcast();
        (, address deployer,) = vm.readCallers();
        d = _deploy(deployer, parameters, genesis);
        vm.stopBroadcast();

        if (vm.isContext(VmSafe.ForgeContext.ScriptBroadcast)) {
            vm.writeFile(string.concat("deploy/", vm.toString(block.chainid), ".toml"), describe(d));
        }
    }

    /// @notice Parameters as a TOML file gives them.
    function parse(string memory toml) public pure returns (Parameters memory) {
        return ParametersFile.parse(toml);
    }

    /// @notice The deployment file.
    function describe(Deployment memory d) public view returns (string memory) {
        string memory head = string.concat(
            "# Written by script/Deploy.s.sol.\nchain_id = ",
            vm.toString(block.chainid),
            "\nblock = ",
            vm.toString(vm.getBlockNumber()),
            "\n"
        );
        string memory money = string.concat(_entry("sno", address(d.sno)), _entry("staking", address(d.staking)));
        string memory work = string.concat(
            _entry("jobs", address(d.jobs)),
            _entry("checkpoints", address(d.checkpoints)),
            _entry("channels", address(d.channels))
        );
        string memory law = string.concat(
            _entry("disputes", address(d.disputes)),
            _entry("challenges", address(d.challenges)),
            _entry("custody", address(d.custody)),
            _entry("audits", address(d.audits)),
            _entry("beacon", address(d.beacon)),
            _entry("step_verifier", address(d.stepVerifier))
        );
        return string.concat(head, money, work, law);
    }

    function _entry(string memory key, address value) private pure returns (string memory) {
        return string.concat(key, " = \"", vm.toString(value), "\"\n");
    }
}
