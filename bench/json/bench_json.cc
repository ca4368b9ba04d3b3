/*
 * bench/json/bench_json.cc: our JSON pass beside simdjson's DOM and jansson, on requests as they come over the wires.
 * All candidates run in turns within each round, so that a slow moment of the machine hits all of them; the ratios are
 * taken per round and their median is shown. Prints Markdown.
 *
 * usage: bench_json [rounds] [milliseconds per sample]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <jansson.h>
#include <simdjson.h>
#include <string>
#include <vector>

// The public headers come first: some of them have C++ overloads, which cannot stand in extern "C".
#include <everywire/json.h>

extern "C" {
#include "json/scan.h"
}

namespace {

using steady = std::chrono::steady_clock;
volatile uint64_t sink;

/* An input of about that many bytes: mostly an array of small objects. */
std::string input_of(size_t size) {
    std::string s = "{\"text\":\"Describe a cat\",\"items\":[";
    char item[256];
    for (int k = 0; s.size() + 110 < size; k++) {
        snprintf(item, sizeof item,
                 "%s{\"name\":\"item-%06d\",\"score\":0.75,\"tags\":[\"alpha\",\"beta\"],\"ok\":true,\"count\":%d}",
                 k > 0 ? "," : "", k, 1000 + k);
        s += item;
    }
    s += "],\"pad\":\"";
    while (s.size() + 2 < size) {
        s += 'x';
    }
    return s + "\"}";
}

/* A runAction request around an input, of about that many bytes. */
std::string request_around(const std::function<std::string(size_t)> &input, size_t total) {
    std::string head = "{\"jsonrpc\":\"2.0\",\"method\":\"runAction\",\"params\":{\"key\":\"/flow/myFlow\",\"input\":";
    std::string tail = ",\"stream\":true},\"id\":\"100000000000\"}";
    return head + input(total - head.size() - tail.size()) + tail;
}

/* Numbers only: an embedding. */
std::string vector_of(size_t size) {
    std::string s = "[";
    char number[64];
    uint64_t x = 88172645463325252u;
    while (s.size() + 24 < size) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        snprintf(number, sizeof number, "%s%.*f", s.size() > 1 ? "," : "", 4 + (int)(x % 9),
                 (double)(int64_t)x / 9.3e18);
        s += number;
    }
    return s + "]";
}

/* One long text in two scripts, with line ends: a model's answer. */
std::string text_of(size_t size) {
    std::string s = "\"";
    for (int k = 0; s.size() + 140 < size; k++) {
        s += k % 3 == 0 ? "Gr\u00f6\u00dfe und Ma\u00df, \u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3002\\n"
                        : "The cat sat on the mat, and then it said \\\"no\\\".\\n";
    }
    return s + "\"";
}

/* The first document, indented. */
std::string pretty_of(size_t size) {
    std::string s, flat = input_of(size * 5 / 11);
    int depth = 0;
    bool quoted = false;
    auto line = [&] { s += "\n" + std::string(static_cast<size_t>(depth) * 2, ' '); };
    for (char c : flat) {
        quoted = quoted != (c == '"');
        if (!quoted && (c == '}' || c == ']')) {
            depth--;
            line();
        }
        s += c;
        if (!quoted && (c == '{' || c == '[')) {
            depth++;
            line();
        } else if (!quoted && c == ',') {
            line();
        } else if (!quoted && c == ':') {
            s += ' ';
        }
    }
    return s;
}

ew_str slice(const std::string &s) { return ew_str{s.data(), s.size()}; }

void must(bool holds) {
    if (!holds) {
        abort();
    }
}

/* Three members, as every wire reads them from each message. */
void find_members(const ew__json_doc &doc) {
    bool repeated = false;
    ew_str method = ew__json_find(&doc, EW_STR("method"), &repeated);
    ew_str params = ew__json_find(&doc, EW_STR("params"), &repeated);
    ew_str id = ew__json_find(&doc, EW_STR("id"), &repeated);
    must(method.len > 0 && params.len > 0 && id.len > 0);
    sink = sink + method.len + params.len + id.len;
}

struct candidate {
    const char *name;
    std::function<void(const std::string &, const simdjson::padded_string &)> run;
};

std::vector<candidate> candidates(simdjson::dom::parser &parser) {
    return {
        {"everywire: validate, index, find",
         [](const std::string &s, const simdjson::padded_string &) {
             ew__json_doc doc;
             must(ew__json_parse(&doc, slice(s)) == EW_OK);
             find_members(doc);
         }},
        {"everywire: validate only",
         [](const std::string &s, const simdjson::padded_string &) {
             must(ew__json_validate(slice(s), nullptr) == EW_OK);
         }},
        {"everywire, portable: validate, index, find",
         [](const std::string &s, const simdjson::padded_string &) {
             ew__json_doc doc;
             must(ew__json_parse_portable(&doc, slice(s)) == EW_OK);
             find_members(doc);
         }},
        {"everywire: lookup in known text",
         [](const std::string &s, const simdjson::padded_string &) { must(ew_json_get(slice(s), "/id").len > 0); }},
        {"simdjson DOM: parse",
         [&parser](const std::string &, const simdjson::padded_string &p) {
             simdjson::dom::element root;
             must(!parser.parse(p).get(root));
             sink = sink + 1;
         }},
        {"simdjson DOM: parse, find",
         [&parser](const std::string &, const simdjson::padded_string &p) {
             simdjson::dom::element root, method, id, input;
             must(!parser.parse(p).get(root) && !root["method"].get(method) && !root["id"].get(id) &&
                  !root["params"]["input"].get(input));
             sink = sink + 1;
         }},
        {"jansson: load, find",
         [](const std::string &s, const simdjson::padded_string &) {
             json_error_t error;
             json_t *root = json_loadb(s.data(), s.size(), 0, &error);
             must(root != nullptr && json_object_get(root, "method") != nullptr &&
                  json_object_get(root, "id") != nullptr &&
                  json_object_get(json_object_get(root, "params"), "input") != nullptr);
             json_decref(root);
         }},
    };
}

const size_t simdjson_row = 4, jansson_row = 6;

double sample(const candidate &c, const std::string &s, const simdjson::padded_string &p, double ms) {
    size_t batch = std::max<size_t>(1, 200000 / s.size()), runs = 0;
    double elapsed = 0;
    auto start = steady::now();
    do {
        for (size_t i = 0; i < batch; i++) {
            c.run(s, p);
        }
        runs += batch;
        elapsed = std::chrono::duration<double>(steady::now() - start).count();
    } while (elapsed * 1000 < ms);
    return static_cast<double>(runs) * static_cast<double>(s.size()) / elapsed / 1e6;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

double ratio(const std::vector<double> &a, const std::vector<double> &b) {
    std::vector<double> r;
    for (size_t i = 0; i < a.size(); i++) {
        r.push_back(a[i] / b[i]);
    }
    return median(r);
}

void table(const std::vector<candidate> &cs, const char *what, const std::string &s, int rounds, double ms) {
    simdjson::padded_string padded(s);
    std::vector<std::vector<double>> rates(cs.size());
    for (int round = -1; round < rounds; round++) { /* the first one warms up */
        for (size_t i = 0; i < cs.size(); i++) {
            size_t k = (i + static_cast<size_t>(round + 1)) % cs.size();
            double rate = sample(cs[k], s, padded, ms);
            if (round >= 0) {
                rates[k].push_back(rate);
            }
        }
    }
    printf("\n| %s, %zu bytes | MB/s (median) | ns | / simdjson DOM | / jansson |\n|---|---:|---:|---:|---:|\n", what,
           s.size());
    for (size_t i = 0; i < cs.size(); i++) {
        double rate = median(rates[i]);
        printf("| %s | %.0f | %.0f | %.2f | %.1f |\n", cs[i].name, rate, static_cast<double>(s.size()) * 1000 / rate,
               ratio(rates[i], rates[simdjson_row]), ratio(rates[i], rates[jansson_row]));
    }
    fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    double ms = argc > 2 ? atof(argv[2]) : 30;
    simdjson::dom::parser parser;
    auto cs = candidates(parser);
    printf("simdjson: %s; everywire: %s; %d rounds\n", simdjson::get_active_implementation()->name().c_str(),
           ew__json_has_avx2() ? "avx2" : "portable", rounds);
    for (size_t size : {size_t{300}, size_t{4096}, size_t{1} << 20}) {
        table(cs, "request", request_around(input_of, size), rounds, ms);
    }
    table(cs, "numbers", request_around(vector_of, 64 << 10), rounds, ms);
    table(cs, "long text", request_around(text_of, 64 << 10), rounds, ms);
    table(cs, "indented", request_around(pretty_of, 64 << 10), rounds, ms);
    return 0;
}
