/* SPDX-License-Identifier: Apache-2.0 */
/* Much code of the C++ library, deeply inlined, and a loop of named functions for argv[1] milliseconds. */
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace work {

template <typename T> struct Mixer {
	T state;
	[[gnu::always_inline]] inline T once(T x)
	{
		state = state * 6364136223846793005ull + x;
		return state ^ (state >> 29);
	}
	[[gnu::noinline]] T many(T x)
	{
		for (int i = 0; i < 4000; i++)
			x ^= once(x + i);
		return x;
	}
};

class Shape {
public:
	virtual ~Shape() = default;
	virtual double area() const = 0;
};

class Square : public Shape {
	double side;

public:
	explicit Square(double s) : side(s) {}
	double area() const override { return side * side; }
};

[[gnu::noinline]] static std::string words(const std::string &text)
{
	std::regex word("([a-z]+)[^a-z]*");
	std::map<std::string, int> counts;
	std::ostringstream out;
	for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i)
		counts[(*i)[1]]++;
	std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
	std::stable_sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
	for (const auto &[name, count] : sorted)
		out << name << '=' << count << ' ';
	return out.str();
}

[[gnu::noinline]] uint64_t spin(uint64_t ms)
{
	Mixer<uint64_t> mixer{ 1 };
	auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
	uint64_t x = 0;
	while (std::chrono::steady_clock::now() < end)
		x += mixer.many(x);
	return x;
}

} // namespace work

int main(int argc, char **argv)
{
	std::vector<std::unique_ptr<work::Shape>> shapes;
	for (int i = 0; i < 3; i++)
		shapes.push_back(std::make_unique<work::Square>(i));
	std::function<double()> total = [&] {
		double sum = 0;
		for (auto &s : shapes)
			sum += s->area();
		return sum;
	};
	std::cout << work::words("the quick fox and the lazy dog and the hen") << total() << ' '
		  << work::spin(argc > 1 ? strtoull(argv[1], nullptr, 10) : 0) % 2 << '\n';
	return 0;
}
