// SPDX-License-Identifier: Apache-2.0
/** Deep DEPTH: so many frames of one method, at whose end a loop runs for a moment, again and again. */
public class Deep {
	static long sink;

	static long spin(long n) {
		for (int i = 0; i < 20000; i++)
			n = n * 6364136223846793005L + 1442695040888963407L;
		return n;
	}

	static long down(int depth) {
		return depth == 0 ? spin(sink) : down(depth - 1) + 1;
	}

	public static void main(String[] args) {
		int depth = Integer.parseInt(args[0]);

		for (;;)
			sink = down(depth);
	}
}
