// llama.cpp as a peer of `tensorlink bench`: one model on one thread. Arguments: the .gguf file, the tokens of its
// context. Writes `ready`, then answers each line of its input with one line:
//
//   prefill N        microseconds of processor time of reading N tokens, and of the choice of the one that follows
//   decode N         the same of one more token after N
//   logits FILE IDS  `done`, once FILE has, for each of these tokens, the logarithms of the probabilities of all tokens
//                    to follow: 32-bit floats in this machine's order
import {writeFileSync} from "node:fs";
import {createInterface} from "node:readline";
import {getLlama} from "node-llama-cpp";

const [file, size] = process.argv.slice(-2);
const contextSize = Number(size);
const llama = await getLlama({gpu: false, build: "never", maxThreads: 1, logLevel: "error"});
const model = await llama.loadModel({modelPath: file});
const context = await model.createContext({contextSize, batchSize: contextSize, sequences: 1, threads: 1});
const sequence = context.getSequence();
const vocabulary = model.fileInfo.metadata.llama.vocab_size ?? model.fileInfo.metadata.tokenizer.ggml.tokens.length;
const text = (count) => Array.from({length: count}, (_, i) => ((i * 40503) % (vocabulary - 300)) + 280);

async function timed(tokens) {
    const input = tokens.map((token, i) => (i + 1 === tokens.length ? [token, {generateNext: {token: true}}] : token));
    const start = process.cpuUsage();
    await sequence.controlledEvaluate(input);
    const {user, system} = process.cpuUsage(start);
    return user + system;
}

async function after(count) {
    if (sequence.nextTokenIndex < count) {
        await sequence.clearHistory();
        await sequence.evaluateWithoutGeneratingNewTokens(text(count));
    } else {
        await sequence.eraseContextTokenRanges([{start: count, end: sequence.nextTokenIndex}]);
    }
}

async function logits(path, ids) {
    await sequence.clearHistory();
    const asked = ids.map((id) => [id, {generateNext: {probabilities: true}}]);
    const rows = await sequence.controlledEvaluate(asked);
    const values = new Float32Array(ids.length * vocabulary).fill(-Infinity);
    rows.forEach((row, i) => {
        for (const [id, probability] of row.next.probabilities) values[i * vocabulary + id] = Math.log(probability);
    });
    writeFileSync(path, values);
    return "done";
}

console.log("ready");
for await (const line of createInterface({input: process.stdin})) {
    const [what, argument, ids] = line.split(" ");
    if (what === "prefill") {
        await sequence.clearHistory();
        console.log(await timed(text(Number(argument))));
    } else if (what === "decode") {
        await after(Number(argument));
        console.log(await timed([text(1)[0]]));
    } else {
        console.log(await logits(argument, ids.split(",").map(Number)));
    }
}
process.exit(0);
