/* SPDX-License-Identifier: Apache-2.0 */
/* For the judge: what C++ adds: exceptions through frames with things to destroy, templates, streams, virtual calls. */
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;

struct guard {
	std::string text;
	explicit guard(int n) : text("a text too long for the small string " + std::to_string(n)) {}
	NOINLINE ~guard() { sink = sink + text.size(); }
};

static NOINLINE void throw_from(int depth)
{
	guard g(depth);

	if (depth == 0)
		throw std::runtime_error("thrown " + g.text);
	throw_from(depth - 1);
	sink = sink + 1;
}

static NOINLINE void rethrow(int depth)
{
	try {
		guard g(1);
		throw_from(depth);
	} catch (const std::runtime_error &) {
		guard g(2);
		throw;
	}
}

static NOINLINE void exceptions()
{
	try {
		rethrow(6);
	} catch (const std::exception &e) {
		sink = sink + std::string(e.what()).size();
	}
	try {
		sink = sink + std::stoul("no number");
	} catch (const std::invalid_argument &) {
		sink = sink + 1;
	}
}

static NOINLINE void containers()
{
	std::vector<std::string> words;
	std::map<std::string, int> counts;

	for (int i = 0; i < 60; i++)
		words.push_back("word " + std::to_string(i * 7919 % 101));
	std::sort(words.begin(), words.end(), [](const std::string &a, const std::string &b) { return a > b; });
	for (const auto &word : words)
		counts[word]++;
	sink = sink + counts.size();
}

static NOINLINE void streams()
{
	std::ostringstream out;

	out << "text " << 42 << ' ' << 3.14159 << ' ' << std::hex << 255;
	std::istringstream in(out.str());
	std::string word;
	while (in >> word)
		sink = sink + word.size();
	std::cout << out.str() << std::endl;
	std::locale::global(std::locale("C"));
}

struct shape {
	virtual ~shape() = default;
	virtual double area() const = 0;
};

struct square : shape {
	double side = 2;
	NOINLINE double area() const override { return side * side; }
};

static NOINLINE void calls()
{
	std::unique_ptr<shape> s = std::make_unique<square>();
	std::function<unsigned long(int)> twice = [&](int n) { return static_cast<unsigned long>(s->area()) * n; };

	sink = sink + twice(3);
	sink = sink + std::regex_match("hearth", std::regex("h(ea|.)+th"));
}

int main()
{
	for (;;) {
		exceptions();
		containers();
		streams();
		calls();
	}
}
