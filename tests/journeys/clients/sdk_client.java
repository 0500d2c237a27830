import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The task of Java's own clients: `java sdk_client.java BASE`. Says nothing. */
class SdkClient {
    static final HttpClient CLIENT = HttpClient.newHttpClient();

    static HttpRequest.Builder to(String url) {
        return HttpRequest.newBuilder(URI.create(url));
    }

    static void check(int status) {
        if (status != 200) throw new IllegalStateException("status " + status);
    }

    static void send(HttpRequest.Builder asked) throws Exception {
        check(CLIENT.send(asked.build(), BodyHandlers.ofByteArray()).statusCode());
    }

    public static void main(String[] words) throws Exception {
        String url = words[0] + "/plain/java";
        send(to(url + "/things?b=2&a=1&a=3"));
        String json = "{\"b\": 1.5, \"a\": \"\u00fc\"}";
        send(to(url + "/json").header("content-type", "application/json").POST(BodyPublishers.ofString(json)));
        String form = "application/x-www-form-urlencoded";
        send(to(url + "/form").header("content-type", form).POST(BodyPublishers.ofString("a=1&b=2")));
        send(to(url + "/bytes").PUT(BodyPublishers.ofByteArray(new byte[256])));
        var all = new ArrayList<CompletableFuture<?>>();
        for (int n = 0; n < 8; n++) { // all at once, so in any order
            all.add(CLIENT.sendAsync(to(url + "/things?n=" + n).build(), BodyHandlers.ofString())
                .thenAccept(answer -> check(answer.statusCode())));
        }
        for (var one : all) one.get(20, TimeUnit.SECONDS);
        var older = (HttpURLConnection) URI.create(url + "/older").toURL().openConnection();
        older.setDoOutput(true);
        older.getOutputStream().write("some text".getBytes());
        check(older.getResponseCode());
        talk(words[0].replace("https", "wss") + "/echo/java");
        System.exit(0); // not when its threads think so
    }

    static void talk(String url) throws Exception {
        var came = new LinkedBlockingQueue<String>();
        var listener = new WebSocket.Listener() {
            @Override
            public CompletionStage<?> onText(WebSocket socket, CharSequence data, boolean last) {
                came.add(data.toString());
                socket.request(1);
                return null;
            }
        };
        var socket = CLIENT.newWebSocketBuilder().buildAsync(URI.create(url), listener).get(20, TimeUnit.SECONDS);
        for (String message : new String[] {"one", "\u00fc"}) {
            socket.sendText(message, true).get(20, TimeUnit.SECONDS);
            if (!message.equals(came.poll(20, TimeUnit.SECONDS))) throw new IllegalStateException("another message");
        }
        socket.sendClose(WebSocket.NORMAL_CLOSURE, "done").get(20, TimeUnit.SECONDS);
    }
}
