import com.rabbitmq.client.*;
import java.util.*;
import java.util.concurrent.*;

/** The story of test_amqp_clients.py with RabbitMQ's Java client: java -cp amqp-client.jar JavaStory.java PORT. */
class JavaStory {
    static final String QUEUE = "story-java";

    /** Bodies in order, acknowledged one by one. Recovery of the connection starts the consumer again. */
    static class Reader extends DefaultConsumer {
        final BlockingQueue<String> bodies = new LinkedBlockingQueue<>();
        final CountDownLatch room;
        boolean done;
        final String last;

        Reader(Channel channel, String last) {
            super(channel);
            this.last = last;
            room = new CountDownLatch(1);
        }

        @Override
        public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body)
                throws java.io.IOException {
            if (done) return;
            bodies.add(new String(body));
            done = last.equals(new String(body));
            getChannel().basicAck(envelope.getDeliveryTag(), false);
            if (done) room.countDown();
        }

        String all() {
            return String.join(",", bodies);
        }
    }

    public static void main(String[] arguments) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost("127.0.0.1");
        factory.setPort(Integer.parseInt(arguments[0]));
        factory.setAutomaticRecoveryEnabled(true);
        factory.setNetworkRecoveryInterval(50);
        Connection connection = factory.newConnection();
        Channel channel = connection.createChannel();
        channel.confirmSelect();
        channel.queueDeclare(QUEUE, true, false, false, null);
        for (int number = 0; number < 100; number++) {
            channel.basicPublish("", QUEUE, MessageProperties.PERSISTENT_TEXT_PLAIN, ("" + number).getBytes());
        }
        channel.waitForConfirmsOrDie();
        System.out.println("confirmed 100");
        CompletableFuture<String> returned = new CompletableFuture<>();
        channel.addReturnListener((code, text, exchange, key, properties, body) ->
            returned.complete(code + " " + text + " " + key));
        channel.basicPublish("", "nobody", true, null, "x".getBytes());
        System.out.println("returned " + returned.get());
        channel.basicQos(10);
        Reader before = new Reader(channel, "59");
        String tag = channel.basicConsume(QUEUE, false, before);
        before.room.await();
        channel.basicCancel(tag);
        System.out.println("took " + before.all());
        channel.queueDeclare(QUEUE, true, false, false, null);
        CountDownLatch lost = new CountDownLatch(1);
        CountDownLatch back = new CountDownLatch(1);
        connection.addShutdownListener(cause -> lost.countDown());
        ((Recoverable) connection).addRecoveryListener(new RecoveryListener() {
            @Override public void handleRecovery(Recoverable recovered) { back.countDown(); }
            @Override public void handleRecoveryStarted(Recoverable recovered) { }
        });
        System.out.println("ready");
        lost.await();
        System.out.println("lost");
        back.await();
        Reader after = new Reader(channel, "99"); // the channel and its prefetch are those of the new connection
        channel.basicConsume(QUEUE, false, after);
        after.room.await();
        System.out.println("took " + after.all());
        connection.close();
        System.out.println("done");
    }
}
