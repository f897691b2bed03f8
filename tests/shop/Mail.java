// SPDX-License-Identifier: Apache-2.0
// The shop's service in Java: POST /mail hashes for a while. It knows nothing of traces: OpenTelemetry's agent makes its spans.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.security.MessageDigest;
import java.util.concurrent.Executors;

public class Mail {
    static byte[] sign(byte[] letter, int rounds) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (int i = 0; i < rounds; i++) letter = digest.digest(letter);
        return letter;
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/mail", exchange -> {
            try {
                sign(new byte[1 << 10], 60000);
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(2));
        server.start();
    }
}
