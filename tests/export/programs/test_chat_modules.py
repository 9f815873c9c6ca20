"""Errors and replaced messages of the chat in `examples/browser`, with models that are scripts."""

from browsers import open_blank

MODEL = """
    let calls = 0;
    const failing = 2;
    const file = {
        metadata: { tokens: { bos: 1, eos: 2, pad: 0 }, max_length: 100,
            search: { search: "greedy" }, streaming: { hides_start: false } },
        vocabularies: { target: {
            encode: (text) => [...text].map((character) => ({ id: character.charCodeAt(0) })),
            decode: (ids) => String.fromCharCode(...ids) } },
        stream: () => ({ next: async () => {
            if (++calls === failing) throw new Error("out of memory");
            return calls > 3 ? 2 : 97;
        } }),
    };
    class Template {
        render({ messages }) {
            return messages.map(({ role, content }) => `<|im-start|>${role}:${content}`).join("");
        }
    }
    const special = { "<|im-start|>": 5 };
    const values = { template: "", special, variables: {}, spaces: "each" };
"""


def test_a_failed_call_leaves_the_conversation_as_it_was(browser, site):
    open_blank(browser, site)
    shown = browser.evaluate(f"""Promise.all([import("./chat.js"), import("./chat-template.js")])
        .then(async ([{{ Chat }}, {{ ChatTemplate }}]) => {{
            {MODEL}
            const template = new ChatTemplate({{ Template }}, {{ ...values, special: {{}} }});
            const chat = new Chat(file, template);
            const run = async () => {{ for await (const part of chat.stream("a")) {{}} }};
            const error = await run().catch(({{ message }}) => message);
            const before = [[...chat.messages], chat.complete, chat.dropped];
            await run();
            return [error, before, chat.messages];
        }})""")
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}]
    assert shown == ["out of memory", [[], True, 0], turns]


def test_special_tokens_may_have_hyphens(browser, site):
    open_blank(browser, site)
    shown = browser.evaluate(f"""import("./chat-template.js").then(({{ ChatTemplate }}) => {{
        {MODEL}
        const template = new ChatTemplate({{ Template }}, values);
        return template.parts([{{ role: "user", content: "a <|im-start|> b" }}]);
    }})""")
    assert shown == [5, "user:a <|im-start|> b"]


def test_a_newer_message_stops_the_answer_to_an_older_one(browser, site):
    """Its later parts are not shown, and the worker is told to stop it."""
    open_blank(browser, site)
    shown = browser.evaluate("""(async () => {
        const sent = [], parts = [];
        let worker;
        globalThis.Worker = class {
            constructor() { worker = this; }
            postMessage({ command, content }) { sent.push(content ?? command); }
            terminate() {}
        };
        const { WorkerChat } = await import("./client.js");
        const loading = WorkerChat.load("x");
        worker.onmessage({ data: { result: {} } });
        const chat = await loading;
        const first = chat.send("one", (part) => parts.push(part)).catch(({ name }) => name);
        worker.onmessage({ data: { part: "1" } });
        const second = chat.send("two", (part) => parts.push(part));
        worker.onmessage({ data: { part: "late" } });
        worker.onmessage({ data: { result: {} } });
        worker.onmessage({ data: { part: "2" } });
        worker.onmessage({ data: { result: { text: "2" } } });
        return [await first, (await second).text, sent, parts];
    })()""")
    assert shown == ["AbortError", "2", ["load", "one", "stop", "two"], ["1", "2"]]
