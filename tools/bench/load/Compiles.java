// SPDX-License-Identifier: Apache-2.0
import javax.tools.ToolProvider;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;

/** Compiles SOURCE FOLDER: javac within this virtual machine, again and again for twelve seconds, by when some 5,000 methods are compiled. */
public class Compiles {
	public static void main(String[] args) {
		CompilationMXBean compilation = ManagementFactory.getCompilationMXBean();
		long end = System.nanoTime() + 12_000_000_000L;

		while (System.nanoTime() < end)
			if (ToolProvider.getSystemJavaCompiler().run(null, null, null, "-nowarn", "-d", args[1], args[0]) != 0)
				System.exit(1);
		System.err.println(compilation.getTotalCompilationTime() + " ms of compilation");
	}
}
